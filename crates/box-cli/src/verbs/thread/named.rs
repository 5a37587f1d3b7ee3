//! How a person names a thread: its box, and as much of its id as tells it from the others.

use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::Output;
use box_api::control::{Outcome, Request, ThreadsAsk};
use box_api::{BoxName, ThreadId};

/// Characters of a whole id.
const ID_CHARS: usize = 16;

/// `<box>` or `<box>/<beginning of an id>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: BoxName,
    /// Characters an id has, at most as many.
    beginning: Option<String>,
}

impl Named {
    /// # Errors
    /// What is wrong with the name or the id.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, beginning) = match text.split_once('/') {
            Some((name, beginning)) => (name, Some(beginning)),
            None => (text, None),
        };
        let name = BoxName::parse(name).map_err(|error| error.to_string())?;
        let fits = |id: &str| {
            let of_id = |c: char| c.is_ascii_lowercase() || ('2'..='7').contains(&c);
            (1..=ID_CHARS).contains(&id.len()) && id.chars().all(of_id)
        };
        match beginning {
            Some(id) if !fits(id) => Err(format!(
                "`{id}` is not the beginning of a thread's id: 1 to {ID_CHARS} characters of a-z and 2-7"
            )),
            Some(id) => Ok(Self {
                name,
                beginning: Some(id.to_owned()),
            }),
            None => Ok(Self {
                name,
                beginning: None,
            }),
        }
    }

    /// The box and the thread that is meant; `None`: its newest.
    ///
    /// # Errors
    /// That no thread, or more than one, begins like this.
    pub(crate) fn resolve(
        &self,
        output: &mut Output,
    ) -> Result<(BoxName, Option<ThreadId>), Complaint> {
        let Some(beginning) = &self.beginning else {
            return Ok((self.name.clone(), None));
        };
        if let Ok(whole) = ThreadId::parse(beginning) {
            return Ok((self.name.clone(), Some(whole)));
        }
        let client = host::reach(output, OtherBuild::Bear)?;
        let ask = Request::Threads(ThreadsAsk {
            name: Some(self.name.clone()),
            archived: true,
        });
        let outcome = client.ask(output, &ask)?;
        let Outcome::Threads { threads } = outcome else {
            return Err(unexpected(&outcome));
        };
        let ids: Vec<ThreadId> = threads.iter().map(|thread| thread.info.thread).collect();
        Ok((self.name.clone(), Some(self.one_of(beginning, &ids)?)))
    }

    fn one_of(&self, beginning: &str, ids: &[ThreadId]) -> Result<ThreadId, Complaint> {
        let mut found = ids.iter().filter(|id| id.as_str().starts_with(beginning));
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(*one),
            (None, _) => {
                let title = format!("box `{}` has no thread `{beginning}`", self.name);
                Err(Complaint::failed("thread-not-found", title)
                    .hinted(format!("`box threads {} --all` lists them", self.name)))
            }
            (Some(_), Some(_)) => {
                let title = format!(
                    "more than one thread of box `{}` begins with `{beginning}`",
                    self.name
                );
                Err(Complaint::usage("thread-ambiguous", title).hinted("type more of its id"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_named_by_its_box_and_the_beginning_of_its_id() {
        let named = |text: &str| Named::parse(text).map(|named| named.beginning);
        assert_eq!(named("demo"), Ok(None));
        assert_eq!(named("demo/2tq5"), Ok(Some("2tq5".to_owned())));
        for wrong in [
            "demo/",
            "demo/A",
            "demo/1",
            "Demo/a",
            "demo/aaaaaaaaaaaaaaaaa",
            "demo/a/b",
        ] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_beginning_means_one_thread_or_none() {
        let ids = [
            ThreadId::from_random([1; 10]),
            ThreadId::from_random([2; 10]),
        ];
        let named = Named::parse("demo/aaaa").unwrap();
        let whole = ids[0].to_string();
        assert_eq!(named.one_of(&whole, &ids).unwrap(), ids[0]);
        assert_eq!(named.one_of("", &ids).unwrap_err().code(), 2);
        assert_eq!(named.one_of("7777", &ids).unwrap_err().code(), 1);
    }
}
