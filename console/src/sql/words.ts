/** Words that highlighting and completion know before the server has sent its own. */

export const TYPES = (
  "BOOLEAN BYTE SHORT INT INTEGER LONG BIGINT REAL FLOAT DOUBLE DECIMAL TIMESTAMP TIMESTAMP_NS TIMESTAMP_MS DATE SYMBOL " +
  "VARCHAR TEXT BINARY UUID IPV4 JSON INTERVAL"
).split(" ");

export const STATIC_KEYWORDS = (
  "SELECT FROM WHERE GROUP BY ORDER LIMIT HAVING AS ON JOIN LEFT RIGHT FULL INNER OUTER CROSS LATERAL UNION ALL EXCEPT " +
  "INTERSECT DISTINCT WITH RECURSIVE CASE WHEN THEN ELSE END AND OR NOT IN IS LIKE ILIKE BETWEEN EXISTS ASC DESC NULLS " +
  "OVER PARTITION ROWS RANGE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE VIEW MATERIALIZED DROP ALTER ADD COLUMN " +
  "RENAME TRUNCATE SHOW EXPLAIN ANALYZE SAMPLE FILL ALIGN CALENDAR LATEST ASOF LT SPLICE WINDOW TOLERANCE PIVOT " +
  "UNPIVOT DECLARE QUALIFY FILTER OFFSET FETCH TTL DEDUP UPSERT KEYS RETURNING BEGIN COMMIT ROLLBACK CAST TO"
).split(" ");

export interface Clause {
  label: string;
  /** Template of CodeMirror's snippets. */
  template: string;
  detail: string;
}

/** Clauses of several words that completion offers as templates. */
export const CLAUSES: Clause[] = [
  { label: "SAMPLE BY", template: "SAMPLE BY ${1h}", detail: "groups by buckets of time" },
  { label: "SAMPLE BY … FILL", template: "SAMPLE BY ${1h} FILL(${PREV})", detail: "with values for empty buckets" },
  { label: "LATEST ON", template: "LATEST ON ${timestamp} PARTITION BY ${key}", detail: "latest row of each key" },
  { label: "ASOF JOIN", template: "ASOF JOIN ${table} ON (${key})", detail: "latest row at or before each row" },
  { label: "LT JOIN", template: "LT JOIN ${table} ON (${key})", detail: "latest row before each row" },
  {
    label: "SPLICE JOIN",
    template: "SPLICE JOIN ${table} ON (${key})",
    detail: "both sides, each with the latest of the other",
  },
  {
    label: "WINDOW JOIN",
    template: "WINDOW JOIN ${table} ON (${key}) RANGE BETWEEN ${1 minute} PRECEDING AND ${1 minute} FOLLOWING",
    detail: "aggregates of rows near each row",
  },
  { label: "GROUP BY", template: "GROUP BY ${column}", detail: "" },
  { label: "ORDER BY", template: "ORDER BY ${column}", detail: "" },
  { label: "PARTITION BY", template: "PARTITION BY ${column}", detail: "" },
  { label: "TOLERANCE", template: "TOLERANCE ${5m}", detail: "greatest distance of a time join" },
  {
    label: "ALIGN TO CALENDAR",
    template: "ALIGN TO CALENDAR TIME ZONE '${Europe/London}'",
    detail: "buckets by local time",
  },
  { label: "INSERT INTO", template: "INSERT INTO ${table} VALUES (${values})", detail: "" },
  {
    label: "CREATE TABLE",
    template:
      "CREATE TABLE ${name} (\n  ts TIMESTAMP,\n  ${symbol} SYMBOL,\n  ${value} DOUBLE\n) TIMESTAMP(ts) PARTITION BY DAY",
    detail: "",
  },
  {
    label: "CREATE MATERIALIZED VIEW",
    template:
      "CREATE MATERIALIZED VIEW ${name} AS (\n  SELECT ${timestamp}, ${avg(value)} FROM ${table} SAMPLE BY ${1h}\n)",
    detail: "",
  },
  { label: "EXPLAIN ANALYZE", template: "EXPLAIN ANALYZE ${statement}", detail: "runs a query and shows its plan" },
];
