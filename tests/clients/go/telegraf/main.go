// Command telegraf writes metrics by the outputs of a configuration of Telegraf, as Telegraf's agent does: it loads the
// configuration, connects, and writes each batch of metrics. It prints a line per batch: how many metrics remain to be sent.
//
// In: the configuration as the first argument. Batches: metrics of all types with odd names and values; a metric whose field has
// another type than its column; a metric after that.
package main

import (
	"fmt"
	"math"
	"os"
	"time"

	"github.com/influxdata/telegraf"
	"github.com/influxdata/telegraf/config"
	"github.com/influxdata/telegraf/metric"
	_ "github.com/influxdata/telegraf/plugins/outputs/influxdb"
	_ "github.com/influxdata/telegraf/plugins/outputs/influxdb_v2"
)

var start = time.Date(2024, 2, 29, 12, 34, 56, 789012345, time.UTC)

func batches() [][]telegraf.Metric {
	one := func(name string, tags map[string]string, fields map[string]any, seconds int) telegraf.Metric {
		return metric.New(name, tags, fields, start.Add(time.Duration(seconds)*time.Second))
	}
	tags := map[string]string{"host": "a b,c=d", "path": `C:\dir\`, "odd": "ü😀", "empty": ""}
	all := []telegraf.Metric{
		one("all.kinds", tags, map[string]any{
			"f": 0.1, "least": 5e-324, "most": -math.MaxFloat64, "i": int64(math.MinInt64), "u": uint64(math.MaxInt64), "yes": true, "no": false, "text": "it's \"quoted\" \\ and\ntwo lines ü😀", "none": "",
			"nan": math.NaN(), "inf": math.Inf(1), "with space": int64(1), "com,ma=": 1.0,
		}, 0),
		one("all.kinds", nil, map[string]any{"f": 2.0}, 1),
	}
	for n := range 1500 {
		all = append(all, one("many", map[string]string{"k": fmt.Sprint("k", n%7)}, map[string]any{"n": int64(n)}, n))
	}
	wrong := []telegraf.Metric{one("all.kinds", nil, map[string]any{"f": "text"}, 2)}
	last := []telegraf.Metric{one("all.kinds", nil, map[string]any{"f": 3.0}, 3)}
	return [][]telegraf.Metric{all, wrong, last}
}

func run(text string) error {
	settings := config.NewConfig()
	if err := settings.LoadConfigData([]byte(text), ""); err != nil {
		return err
	}
	if len(settings.Outputs) != 1 {
		return fmt.Errorf("%d outputs", len(settings.Outputs))
	}
	output := settings.Outputs[0]
	if err := output.Init(); err != nil {
		return err
	}
	if err := output.Connect(); err != nil {
		return err
	}
	for _, batch := range batches() {
		for _, one := range batch {
			output.AddMetric(one)
		}
		err := output.Write()
		fmt.Println(output.BufferLength(), err == nil)
	}
	output.Close()
	return nil
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
