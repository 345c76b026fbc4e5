export interface Example {
  title: string;
  /** What the query shows, in a few words. */
  shows: string;
  sql: string;
  isChart?: boolean;
}

/** Queries over the tables of `tidalite demo`. */
export const EXAMPLES: Example[] = [
  {
    title: "Look at a table",
    shows: "a table name alone is a query",
    sql: "cpu LIMIT 1000",
  },
  {
    title: "Average per hour and region",
    shows: "SAMPLE BY",
    sql: "SELECT timestamp, region, avg(usage_user) AS usage\nFROM cpu\nSAMPLE BY 1h",
    isChart: true,
  },
  {
    title: "Latest row of each host",
    shows: "LATEST ON",
    sql: "SELECT hostname, timestamp, usage_user, usage_system\nFROM cpu\nLATEST ON timestamp PARTITION BY hostname\nORDER BY usage_user DESC",
  },
  {
    title: "One hour of one host",
    shows: "intervals of time",
    sql: "SELECT timestamp, usage_user, usage_system, usage_idle\nFROM cpu\nWHERE hostname = 'host_1' AND timestamp IN '2016-01-01T03'",
    isChart: true,
  },
  {
    title: "Open, high, low, close",
    shows: "candles by first, max, min, last",
    sql: "SELECT timestamp, first(usage_user) AS open, max(usage_user) AS high,\n       min(usage_user) AS low, last(usage_user) AS close\nFROM cpu\nWHERE hostname = 'host_2'\nSAMPLE BY 30m",
    isChart: true,
  },
  {
    title: "Busiest hosts",
    shows: "grouping without GROUP BY",
    sql: "SELECT hostname, region, avg(usage_user) AS mean, max(usage_user) AS peak\nFROM cpu\nORDER BY mean DESC\nLIMIT 10",
    isChart: true,
  },
  {
    title: "CPU beside truck speed",
    shows: "ASOF JOIN",
    sql: "SELECT c.timestamp, c.hostname, c.usage_user, r.name, r.velocity\nFROM cpu c ASOF JOIN readings r\nLIMIT 500",
  },
  {
    title: "Empty buckets filled",
    shows: "FILL(LINEAR)",
    sql: "SELECT timestamp, avg(fuel_consumption) AS fuel\nFROM readings\nWHERE fleet = 'South' AND driver = 'Albert'\nSAMPLE BY 10m FILL(LINEAR)",
    isChart: true,
  },
  {
    title: "Distribution of speeds",
    shows: "a histogram of one column",
    sql: "SELECT velocity FROM readings WHERE velocity > 0 LIMIT 5000",
    isChart: true,
  },
  {
    title: "What a query reads",
    shows: "EXPLAIN ANALYZE",
    sql: "EXPLAIN ANALYZE\nSELECT hostname, max(usage_user)\nFROM cpu\nWHERE timestamp IN '2016-01-01T03' AND region = 'eu-west-1'",
  },
];
