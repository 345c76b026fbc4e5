//! Hosts and what is measured of them: the use cases cpu-only, cpu-single and devops.

use crate::random::Random;
use crate::walk::{Law, Step, Walk};

pub const TAGS: [&str; 10] = [
    "hostname",
    "region",
    "datacenter",
    "rack",
    "os",
    "arch",
    "team",
    "service",
    "service_version",
    "service_environment",
];
const REGIONS: [(&str, &[&str]); 9] = [
    ("us-east-1", &["a", "b", "c", "e"]),
    ("us-west-1", &["a", "b"]),
    ("us-west-2", &["a", "b", "c"]),
    ("eu-west-1", &["a", "b", "c"]),
    ("eu-central-1", &["a", "b"]),
    ("ap-southeast-1", &["a", "b"]),
    ("ap-southeast-2", &["a", "b"]),
    ("ap-northeast-1", &["a", "c"]),
    ("sa-east-1", &["a", "b", "c"]),
];
const GIB: f64 = (1_u64 << 30) as f64;
const DISK: i64 = 1 << 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Cpu,
    CpuSingle,
    DiskIo,
    Disk,
    Kernel,
    Mem,
    Net,
    Nginx,
    Postgres,
    Redis,
}

pub const DEVOPS: [Kind; 9] =
    [Kind::Cpu, Kind::DiskIo, Kind::Disk, Kind::Kernel, Kind::Mem, Kind::Net, Kind::Nginx, Kind::Postgres, Kind::Redis];

impl Kind {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Cpu | Kind::CpuSingle => "cpu",
            Kind::DiskIo => "diskio",
            Kind::Disk => "disk",
            Kind::Kernel => "kernel",
            Kind::Mem => "mem",
            Kind::Net => "net",
            Kind::Nginx => "nginx",
            Kind::Postgres => "postgresl",
            Kind::Redis => "redis",
        }
    }

    #[must_use]
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Kind::Cpu => &[
                "usage_user",
                "usage_system",
                "usage_idle",
                "usage_nice",
                "usage_iowait",
                "usage_irq",
                "usage_softirq",
                "usage_steal",
                "usage_guest",
                "usage_guest_nice",
            ],
            Kind::CpuSingle => &["usage_user"],
            Kind::DiskIo => &["reads", "writes", "read_bytes", "write_bytes", "read_time", "write_time", "io_time"],
            Kind::Disk => &["total", "free", "used", "used_percent", "inodes_total", "inodes_free", "inodes_used"],
            Kind::Kernel => {
                &["boot_time", "interrupts", "context_switches", "processes_forked", "disk_pages_in", "disk_pages_out"]
            }
            Kind::Mem => &[
                "total",
                "available",
                "used",
                "free",
                "cached",
                "buffered",
                "used_percent",
                "available_percent",
                "buffered_percent",
            ],
            Kind::Net => &[
                "bytes_sent",
                "bytes_recv",
                "packets_sent",
                "packets_recv",
                "err_in",
                "err_out",
                "drop_in",
                "drop_out",
            ],
            Kind::Nginx => &["accepts", "active", "handled", "reading", "requests", "waiting", "writing"],
            Kind::Postgres => &[
                "numbackends",
                "xact_commit",
                "xact_rollback",
                "blks_read",
                "blks_hit",
                "tup_returned",
                "tup_fetched",
                "tup_inserted",
                "tup_updated",
                "tup_deleted",
                "conflicts",
                "temp_files",
                "temp_bytes",
                "deadlocks",
                "blk_read_time",
                "blk_write_time",
            ],
            Kind::Redis => &[
                "uptime_in_seconds",
                "total_connections_received",
                "expired_keys",
                "evicted_keys",
                "keyspace_hits",
                "keyspace_misses",
                "instantaneous_ops_per_sec",
                "instantaneous_input_kbps",
                "instantaneous_output_kbps",
                "connected_clients",
                "used_memory",
                "used_memory_rss",
                "used_memory_peak",
                "used_memory_lua",
                "rdb_changes_since_last_save",
                "sync_full",
                "sync_partial_ok",
                "sync_partial_err",
                "pubsub_channels",
                "pubsub_patterns",
                "latest_fork_usec",
                "connected_slaves",
                "master_repl_offset",
                "repl_backlog_active",
                "repl_backlog_size",
                "repl_backlog_histlen",
                "mem_fragmentation_ratio",
                "used_cpu_sys",
                "used_cpu_user",
                "used_cpu_sys_children",
                "used_cpu_user_children",
            ],
        }
    }
}

/// A value as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Int(i64),
    Float(f64),
}

/// One measurement of one host.
#[derive(Debug)]
pub struct Measurement {
    pub kind: Kind,
    pub extra_tags: Vec<(&'static str, String)>,
    walks: Vec<Walk>,
    /// What does not move: the time of booting, the memory.
    fixed: f64,
}

impl Measurement {
    fn new(kind: Kind, random: &mut Random) -> Measurement {
        let growing = |means: &[f64]| means.iter().map(|m| Walk::growing(*m)).collect::<Vec<_>>();
        let small = || Walk::clamped(5.0, 0.0, 100.0, 0.0);
        let middle = |count: usize| vec![Walk::clamped(5.0, 0.0, 1000.0, 0.0); count];
        let (mut extra_tags, mut fixed) = (Vec::new(), 0.0);
        let walks = match kind {
            Kind::Cpu | Kind::CpuSingle => {
                kind.fields().iter().map(|_| Walk::clamped(0.0, 0.0, 100.0, random.unit() * 100.0)).collect()
            }
            Kind::DiskIo => {
                let serial = [(); 3].map(|()| format!("{:03}", random.below(1000)));
                extra_tags.push(("serial", serial.join("-")));
                growing(&[50.0, 50.0, 100.0, 100.0, 5.0, 5.0, 5.0])
            }
            Kind::Disk => {
                extra_tags.push(("path", format!("/dev/sda{}", random.below(10))));
                extra_tags.push(("fstype", ["ext3", "ext4", "btrfs"][random.below(3)].to_owned()));
                vec![Walk::clamped(50.0, 0.0, DISK as f64, (DISK / 2) as f64)]
            }
            Kind::Kernel => {
                fixed = random.below_long(240) as f64;
                growing(&[5.0; 5])
            }
            Kind::Mem => {
                fixed = [8.0, 12.0, 16.0][random.below(3)] * GIB;
                let walk = |random: &mut Random| {
                    Walk::new(Step::Normal(0.0, fixed / 64.0), Law::Clamped(0.0, fixed), random.unit() * fixed)
                };
                vec![walk(random), walk(random), walk(random)]
            }
            Kind::Net => {
                extra_tags.push(("interface", format!("eth{}", random.below(4))));
                growing(&[50.0, 50.0, 50.0, 50.0, 5.0, 5.0, 5.0, 5.0])
            }
            Kind::Nginx => {
                extra_tags = server(random, "nginx");
                let grow = || Walk::growing(5.0);
                vec![grow(), small(), grow(), small(), grow(), small(), small()]
            }
            Kind::Postgres => {
                let mut walks = middle(16);
                walks[12] = Walk::clamped(1024.0, 0.0, GIB, 0.0);
                walks
            }
            Kind::Redis => {
                let mut walks = growing(&[5.0, 50.0, 50.0, 50.0, 50.0]);
                walks.extend([Walk::new(Step::Normal(1.0, 1.0), Law::Free, 0.0); 3]);
                walks.push(Walk::clamped(50.0, 0.0, 10_000.0, 0.0));
                walks.extend([Walk::clamped(50.0, 0.0, 16.0 * GIB, 8.0 * GIB); 4]);
                walks.push(Walk::clamped(50.0, 0.0, 10_000.0, 0.0));
                walks.extend(middle(11));
                walks.push(small());
                walks.extend(middle(4));
                extra_tags = server(random, "redis");
                walks
            }
        };
        Measurement { kind, extra_tags, walks, fixed }
    }

    #[inline]
    pub fn tick(&mut self, random: &mut Random) {
        self.walks.iter_mut().for_each(|walk| walk.tick(random));
    }

    /// The values of the fields, in their order, after `elapsed_s` seconds.
    #[inline]
    pub fn values(&self, elapsed_s: i64, out: &mut Vec<Value>) {
        let int = |value: f64| Value::Int(value as i64);
        let total = self.fixed;
        match self.kind {
            Kind::Disk => {
                let free = self.walks[0].value as i64;
                let used = DISK - free;
                let percent = (100.0 * (used as f64 / DISK as f64)) as i64;
                let (inodes, inodes_free) = (DISK / 4096, free / 4096);
                out.extend([DISK, free, used, percent, inodes, inodes_free, inodes - inodes_free].map(Value::Int));
            }
            Kind::Mem => {
                let [used, cached, buffered] = [0, 1, 2].map(|i: usize| self.walks[i].value.trunc());
                let free = total - used;
                out.extend([int(total), int(free), int(used), int(free), int(cached), int(buffered)]);
                let percents = [100.0 * (used / total), 100.0 * (free / total), 100.0 * buffered / total];
                out.extend(percents.map(Value::Float));
            }
            kind => {
                match kind {
                    Kind::Kernel => out.push(int(self.fixed)),
                    Kind::Redis => out.push(Value::Int(elapsed_s)),
                    _ => {}
                }
                out.extend(self.walks.iter().map(|walk| int(walk.value)));
            }
        }
    }
}

fn server(random: &mut Random, what: &str) -> Vec<(&'static str, String)> {
    let number = random.below(100_000);
    let port = random.below_long(20_000) + 1024;
    vec![("port", port.to_string()), ("server", format!("{what}_{number}"))]
}

#[derive(Debug)]
pub struct Host {
    /// As [`TAGS`].
    pub tags: [String; 10],
    pub measurements: Vec<Measurement>,
}

impl Host {
    #[must_use]
    pub fn new(number: usize, kinds: &[Kind], random: &mut Random) -> Host {
        let measurements = kinds.iter().map(|kind| Measurement::new(*kind, random)).collect();
        let (region, zones) = REGIONS[random.below(9)];
        let datacenter = format!("{region}{}", zones[random.below(zones.len() as i32)]);
        let rack = random.below_long(100).to_string();
        let arch = ["x64", "x86"][random.below(2)];
        let os = ["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"][random.below(3)];
        let service = random.below_long(20).to_string();
        let version = random.below_long(2).to_string();
        let environment = ["production", "staging", "test"][random.below(3)];
        let team = ["SF", "NYC", "LON", "CHI"][random.below(4)];
        let texts = |t: &str| t.to_owned();
        Host {
            tags: [
                format!("host_{number}"),
                texts(region),
                datacenter,
                rack,
                texts(os),
                texts(arch),
                texts(team),
                service,
                version,
                texts(environment),
            ],
            measurements,
        }
    }
}
