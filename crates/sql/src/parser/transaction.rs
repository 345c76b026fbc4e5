//! Transactions.

use super::expected::NameKind;
use super::{Parser, Result};
use crate::Keyword;
use crate::Symbol;
use crate::ast::Transaction;
use Keyword as K;

/// Modes of a transaction.
#[derive(Default)]
pub(super) struct Modes {
    pub(super) read_only: Option<bool>,
    pub(super) isolation: Option<String>,
    pub(super) deferrable: Option<bool>,
}

impl Parser<'_> {
    /// Parses BEGIN, COMMIT, ROLLBACK, SAVEPOINT, RELEASE and their synonyms.
    pub(super) fn transaction(&mut self) -> Result<Transaction> {
        let word = self.keyword(0);
        self.bump();
        match word {
            Some(K::Savepoint) => Ok(Transaction::Savepoint(self.savepoint()?)),
            Some(K::Release) => {
                self.eat(K::Savepoint);
                Ok(Transaction::Release(self.savepoint()?))
            }
            Some(K::Start | K::Begin) => {
                if word == Some(K::Start) {
                    self.expect(K::Transaction)?;
                } else {
                    self.eat_any(&[K::Work, K::Transaction]);
                }
                let Modes { read_only, isolation, deferrable } = self.modes()?;
                Ok(Transaction::Begin { read_only, isolation, deferrable })
            }
            Some(K::Commit | K::End) => {
                self.eat_any(&[K::Work, K::Transaction]);
                if self.eat(K::Prepared) {
                    self.text("the name of a transaction")?;
                }
                Ok(Transaction::Commit { chain: self.chain()? })
            }
            _ => {
                self.eat_any(&[K::Work, K::Transaction]);
                let to = if self.eat(K::To) {
                    self.eat(K::Savepoint);
                    Some(self.savepoint()?)
                } else {
                    None
                };
                Ok(Transaction::Rollback { chain: self.chain()?, to })
            }
        }
    }

    fn savepoint(&mut self) -> Result<crate::ast::Ident> {
        self.name(NameKind::Other, "a savepoint")
    }

    /// Parses `AND [NO] CHAIN`.
    fn chain(&mut self) -> Result<bool> {
        if !self.eat(K::And) {
            return Ok(false);
        }
        let chains = !self.eat(K::No);
        self.expect(K::Chain)?;
        Ok(chains)
    }

    /// Parses the second word of REPEATABLE READ, READ COMMITTED or READ UNCOMMITTED.
    fn level_word(&mut self, words: &[String]) -> Option<Keyword> {
        match words {
            [first] if first == "REPEATABLE" => self.eat_any(&[K::Read]),
            [first] if first == "READ" => self.eat_any(&[K::Committed, K::Uncommitted]),
            _ => None,
        }
    }

    /// Parses `READ ONLY, ISOLATION LEVEL …`, with or without commas.
    pub(super) fn modes(&mut self) -> Result<Modes> {
        let mut modes = Modes::default();
        loop {
            if self.eat_all(&[K::Isolation, K::Level]) {
                let mut words = vec![self.name(NameKind::Other, "a level")?.value.to_ascii_uppercase()];
                while let Some(word) = self.level_word(&words) {
                    words.push(word.to_string());
                }
                modes.isolation = Some(words.join(" "));
            } else if self.eat_all(&[K::Read, K::Only]) {
                modes.read_only = Some(true);
            } else if self.eat_all(&[K::Read, K::Write]) {
                modes.read_only = Some(false);
            } else if self.eat_all(&[K::Not, K::Deferrable]) {
                modes.deferrable = Some(false);
            } else if self.eat(K::Deferrable) {
                modes.deferrable = Some(true);
            } else {
                return Ok(modes);
            }
            self.eat_symbol(Symbol::Comma);
        }
    }
}
