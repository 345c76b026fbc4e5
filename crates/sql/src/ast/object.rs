//! Schemas, functions, indexes, roles, and DROP of anything.

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
    /// What is dropped.
    pub kind: ObjectKind,
    /// Whether missing ones are passed over.
    pub if_exists: bool,
    /// The names; empty for all.
    pub names: Vec<ObjectName>,
    /// The types of the arguments of a function.
    pub args: Option<Vec<TypeName>>,
    /// Whether what needs it goes, too.
    pub cascade: bool,
}

/// CREATE FUNCTION with a body in SQL.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateFunction {
    /// Whether OR REPLACE is said.
    pub or_replace: bool,
    /// The name.
    pub name: ObjectName,
    /// The parameters.
    pub params: Vec<FunctionParam>,
    /// RETURNS type.
    pub returns: Option<TypeName>,
    /// What is said of it, in the order it is written.
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

/// What is said of a function.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionOption {
    /// LANGUAGE name.
    Language(Ident),
    /// IMMUTABLE, STABLE, VOLATILE, STRICT and their like, in upper case.
    Property(String),
    /// AS 'body'.
    Body(String),
    /// RETURN expression.
    Return(Expr),
}

/// CREATE INDEX.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    /// Whether UNIQUE is said.
    pub unique: bool,
    /// Whether an existing one is left alone.
    pub if_not_exists: bool,
    /// The name.
    pub name: Option<ObjectName>,
    /// The table and the columns; `None` if they are left out.
    pub on: Option<(ObjectName, Vec<Expr>)>,
}

/// CREATE USER and CREATE ROLE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRole {
    /// [`ObjectKind::User`] or [`ObjectKind::Role`].
    pub kind: ObjectKind,
    /// Whether an existing one is left alone.
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
    /// Whether it is REVOKE.
    pub is_revoke: bool,
    /// The privileges in upper case, or the roles, each with its columns.
    pub privileges: Vec<(String, Vec<Ident>)>,
    /// What they are for; empty for roles.
    pub on: Vec<ObjectName>,
    /// The kind of object, in upper case, if it is said.
    pub on_kind: Option<String>,
    /// Who.
    pub grantees: Vec<Ident>,
    /// WITH GRANT OPTION, WITH ADMIN OPTION, or the same of REVOKE.
    pub with_option: bool,
    /// CASCADE.
    pub cascade: bool,
}
