//! Schemas, functions, indexes, roles, and DROP.

use super::{Expr, Ident, ObjectName, TypeName};

/// Kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the word it is named after")]
pub enum ObjectKind {
    Table,
    View,
    MaterializedView,
    Schema,
    Database,
    Index,
    Function,
    Role,
    User,
    Sequence,
    Type,
}

/// `DROP kind [IF EXISTS] names [CASCADE | RESTRICT]`, and `DROP ALL TABLES`.
#[derive(Clone, Debug, PartialEq)]
pub struct DropObject {
    /// Kind of the dropped objects.
    pub kind: ObjectKind,
    /// True if IF EXISTS is given.
    pub if_exists: bool,
    /// The names; empty for all.
    pub names: Vec<ObjectName>,
    /// The types of the arguments of a function.
    pub args: Option<Vec<TypeName>>,
    /// True if CASCADE is given: dependent objects are dropped as well.
    pub cascade: bool,
}

/// CREATE FUNCTION with a body in SQL.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateFunction {
    /// True if OR REPLACE is given.
    pub or_replace: bool,
    /// The name.
    pub name: ObjectName,
    /// The parameters.
    pub params: Vec<FunctionParam>,
    /// RETURNS type.
    pub returns: Option<TypeName>,
    /// Options, in source order.
    pub options: Vec<FunctionOption>,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionParam {
    /// The name.
    pub name: Option<Ident>,
    /// The type.
    pub data_type: TypeName,
    /// DEFAULT.
    pub default: Option<Expr>,
}

/// An option of CREATE FUNCTION.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionOption {
    /// LANGUAGE name.
    Language(Ident),
    /// IMMUTABLE, STABLE, VOLATILE, STRICT or a similar property, in upper case.
    Property(String),
    /// AS 'body'.
    Body(String),
    /// RETURN expression.
    Return(Expr),
}

/// CREATE INDEX.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    /// True if UNIQUE is given.
    pub unique: bool,
    /// True if IF NOT EXISTS is given.
    pub if_not_exists: bool,
    /// The name.
    pub name: Option<ObjectName>,
    /// Table and columns; `None` if omitted.
    pub on: Option<(ObjectName, Vec<Expr>)>,
}

/// CREATE USER and CREATE ROLE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRole {
    /// [`ObjectKind::User`] or [`ObjectKind::Role`].
    pub kind: ObjectKind,
    /// True if IF NOT EXISTS is given.
    pub if_not_exists: bool,
    /// The name.
    pub name: Ident,
    /// PASSWORD.
    pub password: Option<String>,
    /// Other words, in upper case.
    pub options: Vec<String>,
}

/// GRANT and REVOKE.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// True for REVOKE, false for GRANT.
    pub is_revoke: bool,
    /// The privileges in upper case, or the roles, each with its columns.
    pub privileges: Vec<(String, Vec<Ident>)>,
    /// Objects of the privileges; empty for roles.
    pub on: Vec<ObjectName>,
    /// Kind of the objects, in upper case, if given.
    pub on_kind: Option<String>,
    /// Roles that receive or lose the privileges.
    pub grantees: Vec<Ident>,
    /// WITH GRANT OPTION or WITH ADMIN OPTION, or the REVOKE equivalent.
    pub with_option: bool,
    /// CASCADE.
    pub cascade: bool,
}
