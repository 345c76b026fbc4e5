//! Expressions.

use super::function::{FunctionCall, SpecialCall};
use super::{Ident, ObjectName, Query, TypeName};
use crate::Span;

/// An expression and its span, which includes enclosing parentheses.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Kind.
    pub kind: ExprKind,
    /// Position in the statement text.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A column: `a`, `t.a`, `s.t.a`.
    Column(ObjectName),
    /// A constant.
    Literal(Literal),
    /// `$1`; counted from 1.
    Parameter(u32),
    /// `@name`, a variable defined by DECLARE.
    Variable(Ident),
    /// A string literal with a type: `DATE '2024-01-01'`.
    Typed {
        /// The type.
        data_type: TypeName,
        /// The string.
        text: String,
    },
    /// `INTERVAL '1 day'`, `INTERVAL 5 MINUTE`.
    Interval(Box<Interval>),
    /// `-x`, `+x`, `~x`, `NOT x`.
    Unary {
        /// The operator.
        op: UnaryOperator,
        /// Its operand.
        operand: Box<Expr>,
    },
    /// An infix operator and its operands.
    Binary {
        /// The left operand.
        left: Box<Expr>,
        /// The operator.
        op: BinaryOperator,
        /// The right operand.
        right: Box<Expr>,
    },
    /// At least two operands connected by AND.
    And(Vec<Expr>),
    /// At least two operands connected by OR.
    Or(Vec<Expr>),
    /// `x [NOT] BETWEEN [SYMMETRIC] low AND high`.
    Between {
        /// The value.
        operand: Box<Expr>,
        /// True if the operator is preceded by NOT.
        negated: bool,
        /// True if SYMMETRIC is given: the bounds may be in either order.
        symmetric: bool,
        /// The lower bound.
        low: Box<Expr>,
        /// The upper bound.
        high: Box<Expr>,
    },
    /// `x [NOT] IN (a, b, …)`; the list may be empty.
    InList {
        /// The value.
        operand: Box<Expr>,
        /// True if the operator is preceded by NOT.
        negated: bool,
        /// The list.
        list: Vec<Expr>,
    },
    /// `x [NOT] IN (SELECT …)`.
    InQuery {
        /// The value.
        operand: Box<Expr>,
        /// True if the operator is preceded by NOT.
        negated: bool,
        /// The query.
        query: Box<Query>,
    },
    /// `x [NOT] IN '2024'`: an interval of time or an array, without parentheses.
    InValue {
        /// The value.
        operand: Box<Expr>,
        /// True if the operator is preceded by NOT.
        negated: bool,
        /// Interval or array that is searched.
        set: Box<Expr>,
    },
    /// `x [NOT] LIKE pattern [ESCAPE …]` and the other pattern operators.
    Like {
        /// The string.
        operand: Box<Expr>,
        /// True if the operator is preceded by NOT.
        negated: bool,
        /// Variant.
        kind: LikeKind,
        /// ANY or ALL of several patterns.
        quantifier: Option<Quantifier>,
        /// The pattern.
        pattern: Box<Expr>,
        /// Escape character given by ESCAPE.
        escape: Option<Box<Expr>>,
    },
    /// `x IS [NOT] …`.
    Is {
        /// The value.
        operand: Box<Expr>,
        /// True if the operator is preceded by NOT.
        negated: bool,
        /// Condition that is tested.
        test: IsTest,
    },
    /// `x = ANY (…)`, `x > ALL (…)`.
    Quantified {
        /// The value.
        left: Box<Expr>,
        /// The comparison.
        op: BinaryOperator,
        /// ANY or ALL.
        quantifier: Quantifier,
        /// Rows or array that `left` is compared with.
        set: Box<QuantifiedSet>,
    },
    /// CASE.
    Case {
        /// The value that is compared, if one is given.
        operand: Option<Box<Expr>>,
        /// The cases, at least one.
        branches: Vec<WhenThen>,
        /// Result of ELSE.
        otherwise: Option<Box<Expr>>,
    },
    /// A cast, in any of its forms.
    Cast {
        /// Syntax of the cast.
        kind: CastKind,
        /// The value.
        operand: Box<Expr>,
        /// The type.
        data_type: TypeName,
    },
    /// `x COLLATE name`.
    Collate {
        /// The string.
        operand: Box<Expr>,
        /// The collation.
        collation: ObjectName,
    },
    /// `x AT TIME ZONE zone`; `None` for AT LOCAL.
    AtTimeZone {
        /// The time.
        operand: Box<Expr>,
        /// The zone.
        zone: Option<Box<Expr>>,
    },
    /// A call of a function, an aggregate or a window function.
    Function(Box<FunctionCall>),
    /// A call whose arguments are separated by keywords, such as EXTRACT.
    Special(Box<SpecialCall>),
    /// `EXISTS (SELECT …)`.
    Exists(Box<Query>),
    /// `(SELECT …)` as a value.
    Subquery(Box<Query>),
    /// `ARRAY(SELECT …)`.
    ArrayQuery(Box<Query>),
    /// `ARRAY[a, b]`, `[a, b]`.
    Array(Vec<Expr>),
    /// `(a, b)`, `ROW(a, b)`.
    Row(Vec<Expr>),
    /// `{'a': 1}`, `MAP {'a': 1}`.
    Dictionary {
        /// True if the braces are preceded by MAP.
        is_map: bool,
        /// Keys and values.
        entries: Vec<(Expr, Expr)>,
    },
    /// `x[1]`, `x[1:2, 3]`.
    Subscript {
        /// The array.
        operand: Box<Expr>,
        /// Subscripts; never empty.
        subscripts: Vec<Subscript>,
    },
    /// `(x).name`, `x[1].name`.
    Field {
        /// The struct.
        operand: Box<Expr>,
        /// The field.
        name: Ident,
    },
    /// `DEFAULT`, as an inserted or assigned value.
    Default,
}

/// A constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    /// NULL.
    Null,
    /// TRUE or FALSE.
    Boolean(bool),
    /// A number as it is written, without underscores; `0x1F` keeps its prefix.
    Number(String),
    /// `10.5m`: a decimal, never a double.
    Decimal(String),
    /// A string, with escapes resolved.
    Text(String),
    /// `x'1F'`: hexadecimal digits.
    Hex(String),
    /// `b'101'`: binary digits.
    Bits(String),
    /// `#u33d/10`, `##1101`, as written.
    Geohash(String),
}

/// `INTERVAL value [unit [TO unit]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// A string or a number.
    pub value: Expr,
    /// The unit of a bare number, or the first field.
    pub field: Option<IntervalField>,
    /// The last field.
    pub to: Option<IntervalField>,
}

/// The unit after an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntervalField {
    /// The word, as written.
    pub unit: Ident,
    /// Digits in parentheses after the unit.
    pub precision: Option<String>,
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `-`.
    Minus,
    /// `+`.
    Plus,
    /// NOT.
    Not,
    /// `~`.
    BitNot,
    /// `|/`.
    SquareRoot,
    /// `||/`.
    CubeRoot,
    /// `@`.
    Abs,
}

/// Infix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the text of each is in the table of the parser")]
pub enum BinaryOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    IntegerDivide,
    Modulo,
    Power,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    NullSafeEqual,
    Concat,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Arrow,
    LongArrow,
    PathArrow,
    PathLongArrow,
    DeletePath,
    Contains,
    ContainedBy,
    ContainsEqual,
    ContainedEqual,
    Overlap,
    NotRightOf,
    NotLeftOf,
    Distance,
    PathExists,
    PathMatch,
    HasKey,
    HasAnyKey,
    HasAllKeys,
    StartsWith,
    RegexMatch,
    RegexMatchInsensitive,
    RegexNotMatch,
    RegexNotMatchInsensitive,
    LikeMatch,
    LikeMatchInsensitive,
    NotLikeMatch,
    NotLikeMatchInsensitive,
    Xor,
    Overlaps,
}

/// Pattern-matching operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikeKind {
    /// LIKE.
    Like,
    /// ILIKE.
    Ilike,
    /// SIMILAR TO.
    Similar,
    /// RLIKE and REGEXP.
    Regexp,
}

/// Condition tested by IS.
#[derive(Clone, Debug, PartialEq)]
pub enum IsTest {
    /// NULL.
    Null,
    /// TRUE.
    True,
    /// FALSE.
    False,
    /// UNKNOWN.
    Unknown,
    /// DISTINCT FROM another value.
    DistinctFrom(Box<Expr>),
    /// NORMALIZED.
    Normalized,
    /// JSON.
    Json,
}

/// ANY or ALL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// ANY and SOME.
    Any,
    /// ALL.
    All,
}

/// Content of the parentheses after ANY or ALL.
#[derive(Clone, Debug, PartialEq)]
pub enum QuantifiedSet {
    /// A query.
    Query(Box<Query>),
    /// An array, or several values.
    Values(Vec<Expr>),
}

/// One case of CASE.
#[derive(Clone, Debug, PartialEq)]
pub struct WhenThen {
    /// The condition, or the value that is compared.
    pub when: Expr,
    /// The result.
    pub then: Expr,
}

/// The forms of a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastKind {
    /// `CAST(x AS t)`.
    Cast,
    /// `TRY_CAST(x AS t)`, which returns NULL if the cast fails.
    TryCast,
    /// `x::t`.
    DoubleColon,
}

/// Content of the brackets after an array.
#[derive(Clone, Debug, PartialEq)]
pub enum Subscript {
    /// `[1]`.
    Index(Expr),
    /// `[1:2]`, `[:2]`, `[1:]`, `[1:9:2]`.
    Slice {
        /// The first element.
        lower: Option<Box<Expr>>,
        /// The last element.
        upper: Option<Box<Expr>>,
        /// The step.
        stride: Option<Box<Expr>>,
    },
}
