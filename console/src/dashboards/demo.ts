import { tables } from "../state/schema.ts";
import type { Dashboard, Panel } from "./model.ts";

export const DEMO_NAME = "Demo data";

const PANELS: Omit<Panel, "id">[] = [
  {
    title: "User time by region",
    sql: "SELECT timestamp, region, avg(usage_user) AS usage\nFROM cpu\nWHERE timestamp BETWEEN :from AND :to\nSAMPLE BY :interval",
    chart: { kind: "line" },
    x: 0,
    y: 0,
    w: 8,
    h: 8,
  },
  {
    title: "Hosts",
    sql: "SELECT count(DISTINCT hostname) AS hosts FROM cpu",
    chart: { kind: "value" },
    x: 8,
    y: 0,
    w: 2,
    h: 4,
  },
  {
    title: "Rows",
    sql: "SELECT count() AS rows FROM cpu",
    chart: { kind: "value" },
    x: 10,
    y: 0,
    w: 2,
    h: 4,
  },
  {
    title: "Bytes in memory",
    sql: "SELECT bytes FROM memory_metrics() WHERE memory_tag = 'TOTAL_USED'",
    chart: { kind: "value" },
    x: 8,
    y: 4,
    w: 4,
    h: 4,
  },
  {
    title: "One host",
    sql: "SELECT timestamp, avg(usage_user) AS user, avg(usage_system) AS system\nFROM cpu\nWHERE hostname = :host AND timestamp BETWEEN :from AND :to\nSAMPLE BY :interval",
    chart: { kind: "area" },
    x: 0,
    y: 8,
    w: 6,
    h: 8,
  },
  {
    title: "Candles of one host",
    sql: "SELECT timestamp, first(usage_user) AS open, max(usage_user) AS high,\n       min(usage_user) AS low, last(usage_user) AS close\nFROM cpu\nWHERE hostname = :host AND timestamp BETWEEN :from AND :to\nSAMPLE BY 30m",
    chart: { kind: "candles" },
    x: 6,
    y: 8,
    w: 6,
    h: 8,
  },
  {
    title: "Busiest hosts",
    sql: "SELECT hostname, region, avg(usage_user) AS mean, max(usage_user) AS peak\nFROM cpu\nWHERE timestamp BETWEEN :from AND :to\nORDER BY mean DESC\nLIMIT 20",
    chart: { kind: "table" },
    x: 0,
    y: 16,
    w: 6,
    h: 8,
  },
  {
    title: "Speed of trucks by fleet",
    sql: "SELECT timestamp, fleet, avg(velocity) AS speed\nFROM readings\nWHERE timestamp BETWEEN :from AND :to\nSAMPLE BY :interval",
    chart: { kind: "line" },
    x: 6,
    y: 16,
    w: 6,
    h: 8,
  },
];

const DEMO: Dashboard = {
  panels: PANELS.map((panel, i) => ({ id: `p${i + 1}`, ...panel })),
  variables: [
    { name: "host", kind: "list", value: "host_1", sql: "SELECT DISTINCT hostname FROM cpu ORDER BY hostname" },
  ],
  // The rows of the demo are of this day.
  range: { from: "2016-01-01", to: "2016-01-02" },
  refreshMs: 5000,
};

/** The dashboard over the tables of `tidalite demo`, if the server has them. */
export function demoDashboards(): Map<string, Dashboard> {
  const names = new Set(tables.value.map(({ name }) => name));
  return new Map(names.has("cpu") && names.has("readings") ? [[DEMO_NAME, DEMO]] : []);
}
