//! Keywords, with the four categories of PostgreSQL 15.
//!
//! Keywords are contextual. Every word token has its [`Keyword`], if any; at each position the grammar decides
//! whether the word is a keyword or a name, and [`Category`] tells where PostgreSQL allows the word as a name. The rows
//! are `SELECT * FROM pg_get_keywords()` of PostgreSQL 15 plus the keywords of Tidalite's own clauses, all unreserved.

/// Positions at which a keyword is allowed as an unquoted name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Any position.
    Unreserved,
    /// Name of a column, table or alias, but not of a function or type.
    ColumnName,
    /// Name of a function or type, but not of a column, table or alias.
    TypeOrFunctionName,
    /// Only after AS and at positions where only a name is allowed.
    Reserved,
}

macro_rules! keywords {
    ($($name:ident $text:literal $class:ident,)*) => {
        /// A word that the grammar knows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        #[expect(missing_docs, reason = "each is the word it is named after")]
        pub enum Keyword {
            $($name,)*
        }

        /// All keywords in alphabetical order, the order of the enum.
        const ROWS: &[(&str, Keyword, Class)] = &[$(($text, Keyword::$name, Class::$class),)*];
    };
}

/// Category by its letter; a lower-case letter means that a column alias requires AS.
#[derive(Clone, Copy)]
#[expect(non_camel_case_types, reason = "the letters of the table below")]
enum Class {
    U,
    u,
    C,
    c,
    T,
    t,
    R,
    r,
}

/// Length of the longest keyword, in bytes.
const LENGTH_MAX: usize = 17;

impl Keyword {
    /// Returns all keywords, in alphabetical order.
    pub fn all() -> impl Iterator<Item = Keyword> {
        ROWS.iter().map(|(_, keyword, _)| *keyword)
    }

    /// Returns the keyword that `word` spells, ignoring case.
    #[must_use]
    pub fn find(word: &str) -> Option<Keyword> {
        if word.len() > LENGTH_MAX {
            return None;
        }
        let mut lower = [0_u8; LENGTH_MAX];
        let lower = &mut lower[..word.len()];
        lower.copy_from_slice(word.as_bytes());
        lower.make_ascii_lowercase();
        let found = ROWS.binary_search_by(|(text, ..)| text.as_bytes().cmp(lower)).ok()?;
        Some(ROWS[found].1)
    }

    /// Returns the keyword in lower case.
    #[must_use]
    pub fn text(self) -> &'static str {
        ROWS[self as usize].0
    }

    /// Returns the category, which tells where the word is allowed as a name.
    #[must_use]
    pub fn category(self) -> Category {
        match ROWS[self as usize].2 {
            Class::U | Class::u => Category::Unreserved,
            Class::C | Class::c => Category::ColumnName,
            Class::T | Class::t => Category::TypeOrFunctionName,
            Class::R | Class::r => Category::Reserved,
        }
    }

    /// Returns true if the word may be a column alias without AS.
    #[must_use]
    pub fn is_bare_label(self) -> bool {
        matches!(ROWS[self as usize].2, Class::U | Class::C | Class::T | Class::R)
    }

    /// Returns true if the word may name a column, a table or an alias.
    #[must_use]
    pub fn is_column_name(self) -> bool {
        matches!(self.category(), Category::Unreserved | Category::ColumnName)
    }
}

impl std::fmt::Display for Keyword {
    /// Formats the keyword in upper case, as in messages.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text().to_ascii_uppercase())
    }
}

keywords! {
    Abort "abort" U, Absolute "absolute" U, Access "access" U, Action "action" U, Add "add" U, Admin "admin" U,
    After "after" U, Aggregate "aggregate" U, Align "align" U, All "all" R, Also "also" U, Alter "alter" U,
    Always "always" U, Analyse "analyse" R, Analyze "analyze" R, And "and" R, Anti "anti" U, Any "any" R,
    Array "array" r, As "as" r, Asc "asc" R, Asensitive "asensitive" U, Asof "asof" U, Assertion "assertion" U,
    Assignment "assignment" U, Asymmetric "asymmetric" R, At "at" U, Atomic "atomic" U, Attach "attach" U,
    Attribute "attribute" U, Authorization "authorization" T, Backup "backup" U, Backward "backward" U, Base "base" U,
    Batch "batch" U, Before "before" U, Begin "begin" U, Between "between" C, Bigint "bigint" C, Binary "binary" T,
    Bit "bit" C, Boolean "boolean" C, Both "both" R, Breadth "breadth" U, By "by" U, Bypass "bypass" U,
    Cache "cache" U, Calendar "calendar" U, Call "call" U, Called "called" U, Cancel "cancel" U,
    Capacity "capacity" U, Cascade "cascade" U, Cascaded "cascaded" U, Case "case" R, Cast "cast" R,
    Catalog "catalog" U, Chain "chain" U, Char "char" c, Character "character" c, Characteristics "characteristics" U,
    Check "check" R, Checkpoint "checkpoint" U, Class "class" U, Close "close" U, Cluster "cluster" U,
    Coalesce "coalesce" C, Collate "collate" R, Collation "collation" T, Column "column" R, Columns "columns" U,
    Comment "comment" U, Comments "comments" U, Commit "commit" U, Committed "committed" U,
    Compression "compression" U, Concurrently "concurrently" T, Configuration "configuration" U,
    Conflict "conflict" U, Connection "connection" U, Constraint "constraint" R, Constraints "constraints" U,
    Content "content" U, Continue "continue" U, Conversion "conversion" U, Convert "convert" U, Copy "copy" U,
    Cost "cost" U, Create "create" r, Cross "cross" T, Csv "csv" U, Cube "cube" U, Cumulative "cumulative" U,
    Current "current" U, CurrentCatalog "current_catalog" R, CurrentDate "current_date" R,
    CurrentRole "current_role" R, CurrentSchema "current_schema" T, CurrentTime "current_time" R,
    CurrentTimestamp "current_timestamp" R, CurrentUser "current_user" R, Cursor "cursor" U, Cycle "cycle" U,
    Data "data" U, Database "database" U, Day "day" u, Deallocate "deallocate" U, Dec "dec" C, Decimal "decimal" C,
    Declare "declare" U, Dedup "dedup" U, Default "default" R, Defaults "defaults" U, Deferrable "deferrable" R,
    Deferred "deferred" U, Definer "definer" U, Delay "delay" U, Delete "delete" U, Delimiter "delimiter" U,
    Delimiters "delimiters" U, Depends "depends" U, Depth "depth" U, Desc "desc" R, Describe "describe" U,
    Detach "detach" U, Dictionary "dictionary" U, Disable "disable" U, Discard "discard" U, Distinct "distinct" R,
    Div "div" U, Do "do" R, Document "document" U, Domain "domain" U, Double "double" U, Drop "drop" U, Each "each" U,
    Else "else" R, Enable "enable" U, Encoding "encoding" U, Encrypted "encrypted" U, End "end" R, Enum "enum" U,
    Error "error" U, Escape "escape" U, Event "event" U, Every "every" U, Except "except" r, Exclude "exclude" U,
    Excluding "excluding" U, Exclusive "exclusive" U, Execute "execute" U, Exists "exists" C, Explain "explain" U,
    Expression "expression" U, Extension "extension" U, External "external" U, Extract "extract" C, False "false" R,
    Family "family" U, Fetch "fetch" r, Fill "fill" U, Filter "filter" u, Finalize "finalize" U, First "first" U,
    Float "float" C, Following "following" U, For "for" r, Force "force" U, Foreign "foreign" R, Forward "forward" U,
    Freeze "freeze" T, From "from" r, Full "full" T, Function "function" U, Functions "functions" U,
    Generated "generated" U, Global "global" U, Grant "grant" r, Granted "granted" U, Greatest "greatest" C,
    Group "group" r, Grouping "grouping" C, Groups "groups" U, Handler "handler" U, Having "having" r,
    Header "header" U, Hold "hold" U, Horizon "horizon" U, Hour "hour" u, Identity "identity" U, If "if" U,
    Ignore "ignore" U, Ilike "ilike" T, Immediate "immediate" U, Immutable "immutable" U, Implicit "implicit" U,
    Import "import" U, In "in" R, Include "include" U, Including "including" U, Increment "increment" U,
    Incremental "incremental" U, Index "index" U, Indexes "indexes" U, Inherit "inherit" U, Inherits "inherits" U,
    Initially "initially" R, Inline "inline" U, Inner "inner" T, Inout "inout" C, Input "input" U,
    Insensitive "insensitive" U, Insert "insert" U, Instead "instead" U, Int "int" C, Integer "integer" C,
    Intersect "intersect" r, Interval "interval" C, Into "into" r, Invoker "invoker" U, Is "is" T, Isnull "isnull" t,
    Isolation "isolation" U, Join "join" T, Keep "keep" U, Key "key" U, Keys "keys" U, Label "label" U,
    Language "language" U, Large "large" U, Last "last" U, Lateral "lateral" R, Latest "latest" U,
    Leading "leading" R, Leakproof "leakproof" U, Least "least" C, Left "left" T, Length "length" U, Level "level" U,
    Like "like" T, Limit "limit" r, Linear "linear" U, List "list" U, Listen "listen" U, Load "load" U,
    Local "local" U, Localtime "localtime" R, Localtimestamp "localtimestamp" R, Location "location" U, Lock "lock" U,
    Locked "locked" U, Logged "logged" U, Lt "lt" U, Manual "manual" U, Map "map" U, Mapping "mapping" U,
    Match "match" U, Matched "matched" U, Materialized "materialized" U, Maxvalue "maxvalue" U, Merge "merge" U,
    Method "method" U, Minute "minute" u, Minvalue "minvalue" U, Mode "mode" U, Month "month" u, Move "move" U,
    Name "name" U, Names "names" U, National "national" C, Natural "natural" T, Nchar "nchar" C, New "new" U,
    Next "next" U, Nfc "nfc" U, Nfd "nfd" U, Nfkc "nfkc" U, Nfkd "nfkd" U, No "no" U, Nocache "nocache" U,
    None "none" C, Normalize "normalize" C, Normalized "normalized" U, Not "not" R, Nothing "nothing" U,
    Notify "notify" U, Notnull "notnull" t, Nowait "nowait" U, Null "null" R, Nullif "nullif" C, Nulls "nulls" U,
    Numeric "numeric" C, Object "object" U, Observation "observation" U, Of "of" U, Off "off" U, Offset "offset" r,
    Oids "oids" U, Old "old" U, On "on" r, Only "only" R, Operator "operator" U, Option "option" U,
    Options "options" U, Or "or" R, Order "order" r, Ordinality "ordinality" U, Others "others" U, Out "out" C,
    Outer "outer" T, Over "over" u, Overflow "overflow" U, Overlaps "overlaps" t, Overlay "overlay" C,
    Overridable "overridable" U, Overriding "overriding" U, Owned "owned" U, Owner "owner" U, Parallel "parallel" U,
    Param "param" U, Parameter "parameter" U, Parameters "parameters" U, Parser "parser" U, Partial "partial" U,
    Partition "partition" U, Partitions "partitions" U, Passing "passing" U, Password "password" U,
    Percent "percent" U, Period "period" U, Pivot "pivot" U, Placing "placing" R, Plans "plans" U, Policy "policy" U,
    Position "position" C, Preceding "preceding" U, Precision "precision" c, Prepare "prepare" U,
    Prepared "prepared" U, Preserve "preserve" U, Prev "prev" U, Prevailing "prevailing" U, Primary "primary" R,
    Prior "prior" U, Privileges "privileges" U, Procedural "procedural" U, Procedure "procedure" U,
    Procedures "procedures" U, Program "program" U, Publication "publication" U, Qualify "qualify" U, Query "query" U,
    Quote "quote" U, Range "range" U, Read "read" U, Real "real" C, Reassign "reassign" U, Recheck "recheck" U,
    Recursive "recursive" U, Ref "ref" U, References "references" R, Referencing "referencing" U, Refresh "refresh" U,
    Regexp "regexp" U, Reindex "reindex" U, Relative "relative" U, Release "release" U, Rename "rename" U,
    Repeatable "repeatable" U, Replace "replace" U, Replica "replica" U, Reset "reset" U, Respect "respect" U,
    Restart "restart" U, Restrict "restrict" U, Resume "resume" U, Return "return" U, Returning "returning" r,
    Returns "returns" U, Revoke "revoke" U, Right "right" T, Rlike "rlike" U, Role "role" U, Rollback "rollback" U,
    Rollup "rollup" U, Routine "routine" U, Routines "routines" U, Row "row" C, Rows "rows" U, Rule "rule" U,
    SafeCast "safe_cast" U, Sample "sample" U, Savepoint "savepoint" U, Schema "schema" U, Schemas "schemas" U,
    Scroll "scroll" U, Seal "seal" U, Search "search" U, Second "second" u, Security "security" U, Select "select" R,
    Semi "semi" U, Separator "separator" U, Sequence "sequence" U, Sequences "sequences" U,
    Serializable "serializable" U, Server "server" U, Session "session" U, SessionUser "session_user" R, Set "set" U,
    Setof "setof" C, Sets "sets" U, Share "share" U, Show "show" U, Similar "similar" T, Simple "simple" U,
    Skip "skip" U, Smallint "smallint" C, Snapshot "snapshot" U, Some "some" R, Source "source" U, Splice "splice" U,
    Sql "sql" U, Squash "squash" U, Stable "stable" U, Standalone "standalone" U, Start "start" U,
    Statement "statement" U, Statistics "statistics" U, Stdin "stdin" U, Stdout "stdout" U, Step "step" U,
    Storage "storage" U, Stored "stored" U, Strict "strict" U, Strip "strip" U, Subscription "subscription" U,
    Substring "substring" C, Summarize "summarize" U, Support "support" U, Suspend "suspend" U,
    Symmetric "symmetric" R, Sysid "sysid" U, System "system" U, Table "table" R, Tables "tables" U,
    Tablesample "tablesample" T, Tablespace "tablespace" U, Target "target" U, Temp "temp" U, Template "template" U,
    Temporary "temporary" U, Text "text" U, Then "then" R, Ties "ties" U, Time "time" C, Timestamp "timestamp" C,
    To "to" r, Tolerance "tolerance" U, Trailing "trailing" R, Transaction "transaction" U, Transform "transform" U,
    Treat "treat" C, Trigger "trigger" U, Trim "trim" C, True "true" R, Truncate "truncate" U, Trusted "trusted" U,
    TryCast "try_cast" U, Ttl "ttl" U, Type "type" U, Types "types" U, Uescape "uescape" U, Unbounded "unbounded" U,
    Uncommitted "uncommitted" U, Unencrypted "unencrypted" U, Union "union" r, Unique "unique" R, Unknown "unknown" U,
    Unlisten "unlisten" U, Unlogged "unlogged" U, Unnest "unnest" U, Unpivot "unpivot" U, Until "until" U,
    Update "update" U, Upsert "upsert" U, User "user" R, Using "using" R, Vacuum "vacuum" U, Valid "valid" U,
    Validate "validate" U, Validator "validator" U, Value "value" U, Values "values" C, Varchar "varchar" C,
    Variadic "variadic" R, Varying "varying" u, Verbose "verbose" T, Version "version" U, View "view" U,
    Views "views" U, Volatile "volatile" U, Volume "volume" U, Wal "wal" U, When "when" R, Where "where" r,
    Whitespace "whitespace" U, Window "window" r, With "with" r, Within "within" u, Without "without" u,
    Work "work" U, Wrapper "wrapper" U, Write "write" U, Xml "xml" U, Xmlattributes "xmlattributes" C,
    Xmlconcat "xmlconcat" C, Xmlelement "xmlelement" C, Xmlexists "xmlexists" C, Xmlforest "xmlforest" C,
    Xmlnamespaces "xmlnamespaces" C, Xmlparse "xmlparse" C, Xmlpi "xmlpi" C, Xmlroot "xmlroot" C,
    Xmlserialize "xmlserialize" C, Xmltable "xmltable" C, Xor "xor" U, Year "year" u, Yes "yes" U, Zone "zone" U,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_found() {
        assert!(ROWS.is_sorted_by(|a, b| a.0 < b.0));
        for (at, (text, keyword, _)) in ROWS.iter().enumerate() {
            assert_eq!(*keyword as usize, at);
            assert_eq!(Keyword::find(&text.to_uppercase()), Some(*keyword));
        }
        assert_eq!(ROWS.iter().map(|(text, ..)| text.len()).max(), Some(LENGTH_MAX));
        assert_eq!(Keyword::find("hostname"), None);
    }

    #[test]
    fn categories_are_those_of_postgresql() {
        assert_eq!(Keyword::Select.category(), Category::Reserved);
        assert_eq!(Keyword::Left.category(), Category::TypeOrFunctionName);
        assert_eq!(Keyword::Interval.category(), Category::ColumnName);
        assert_eq!(Keyword::View.category(), Category::Unreserved);
        assert!(Keyword::Select.is_bare_label() && !Keyword::Filter.is_bare_label());
    }
}
