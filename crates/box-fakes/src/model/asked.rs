//! A request to a model as every API means it, and what the script answers to it.

use super::check::Refusal;
use super::script::{Script, Step};
use super::state::Turn;
use crate::rig::{Recorded, internet::Internet};
use http::StatusCode;

/// Told to a request without tools, such as one for a title.
const BESIDE: &str = r#"{"title": "A turn on the rig"}"#;

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) model: String,
    pub(crate) has_tools: bool,
    pub(crate) said: Vec<Said>,
}

/// A part of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    User(Vec<String>),
    /// One answer of the model, with the names of the calls it made.
    Model(Vec<String>),
    /// What a call gave: its name, and its text.
    Result(String, String),
}

impl Asked {
    /// Adds what the model said; several things in a row are one answer.
    pub(crate) fn model_said(&mut self, call: Option<String>) {
        if let Some(Said::Model(calls)) = self.said.last_mut() {
            calls.extend(call);
        } else {
            self.said.push(Said::Model(call.into_iter().collect()));
        }
    }

    /// Every call has its result, every result its call, and the model is not last.
    pub(crate) fn check(&self, head: &Recorded) -> Result<(), Refusal> {
        let refuse = |why: String| Err(Refusal::of(head, StatusCode::BAD_REQUEST, why));
        if self.model.is_empty() {
            return refuse("`model` is missing".to_owned());
        }
        let mut open: Vec<&String> = Vec::new();
        for said in &self.said {
            match said {
                Said::User(_) => {}
                Said::Model(calls) => open.extend(calls),
                Said::Result(call, _) => match open.iter().position(|name| *name == call) {
                    Some(place) => drop(open.remove(place)),
                    None => return refuse(format!("the result of `{call}` has no call")),
                },
            }
        }
        match (self.said.last(), open.first()) {
            (None, _) => refuse("nothing is asked".to_owned()),
            (_, Some(call)) => refuse(format!("the call `{call}` has no result")),
            (Some(Said::Model(_)), None) => refuse("the last word is the model's".to_owned()),
            (Some(Said::User(_) | Said::Result(..)), None) => Ok(()),
        }
    }

    /// The steps of the answer.
    pub(crate) fn answer(&self, internet: &Internet, head: &Recorded) -> Vec<Step> {
        let line = |kind: &str| format!("{} {}: {kind}", head.method, head.path);
        internet.with(|world| {
            if !self.has_tools {
                world.model.side(line("without tools"));
                return vec![Step::text(BESIDE)];
            }
            let Some((prompt, message)) = self.place(&world.model.scripts) else {
                world.model.side(line("no script"));
                return vec![Step::text("(no script for this prompt)")];
            };
            let turn = Turn {
                prompt,
                message,
                session: None,
                model: self.model.clone(),
                before: self.before(&world.model.scripts),
                tool_results: self.results(),
            };
            world.note(format!(
                "model: `{}`, message {}",
                turn.prompt, turn.message
            ));
            world.model.take(turn)
        })
    }

    /// The newest prompt that has a script, and how many answers came since.
    fn place(&self, scripts: &[Script]) -> Option<(String, usize)> {
        let mut answers = 0;
        for said in self.said.iter().rev() {
            let found = match said {
                Said::User(texts) => prompt_of(scripts, texts),
                Said::Model(_) => {
                    answers += 1;
                    None
                }
                Said::Result(..) => None,
            };
            if let Some(prompt) = found {
                return Some((prompt, answers));
            }
        }
        None
    }

    /// Prompts of scripts before the newest.
    fn before(&self, scripts: &[Script]) -> Vec<String> {
        let prompts = self.said.iter().filter_map(|said| match said {
            Said::User(texts) => prompt_of(scripts, texts),
            Said::Model(_) | Said::Result(..) => None,
        });
        let mut all: Vec<String> = prompts.collect();
        all.pop();
        all
    }

    /// Texts of the results at the end.
    fn results(&self) -> Vec<String> {
        let last = self.said.iter().rev().map_while(|said| match said {
            Said::Result(_, text) => Some(text.clone()),
            Said::User(_) | Said::Model(_) => None,
        });
        let mut results: Vec<String> = last.collect();
        results.reverse();
        results
    }
}

/// The script whose prompt is in these texts.
fn prompt_of(scripts: &[Script], texts: &[String]) -> Option<String> {
    let fits = |script: &&Script| texts.iter().any(|text| text.contains(&script.prompt));
    scripts
        .iter()
        .find(fits)
        .map(|script| script.prompt.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(said: &[Said]) -> Asked {
        Asked {
            model: "m".to_owned(),
            has_tools: true,
            said: said.to_vec(),
        }
    }

    fn user(text: &str) -> Said {
        Said::User(vec![text.to_owned()])
    }

    fn result(call: &str) -> Said {
        Said::Result(call.to_owned(), format!("of {call}"))
    }

    #[test]
    fn the_place_is_the_number_of_answers_since_the_prompt() {
        let scripts = [Script::on("make it"), Script::on("undo it")];
        let mut one = asked(&[user("please make it")]);
        assert_eq!(one.place(&scripts), Some(("make it".to_owned(), 0)));
        one.model_said(None);
        one.model_said(Some("a".to_owned()));
        one.said.push(result("a"));
        assert_eq!(one.place(&scripts), Some(("make it".to_owned(), 1)));
        assert_eq!(one.results(), ["of a"]);
        one.said.push(user("undo it"));
        assert_eq!(one.place(&scripts), Some(("undo it".to_owned(), 0)));
        assert_eq!(asked(&[user("other")]).place(&scripts), None);
    }

    #[test]
    fn calls_and_results_belong_together() {
        let head = super::super::check::tests::json_head();
        let why = |said: &[Said]| asked(said).check(&head).err().map(|refusal| refusal.why);
        let call = Said::Model(vec!["a".to_owned()]);
        assert_eq!(why(&[user("x"), call.clone(), result("a")]), None);
        let no_result = Some("the call `a` has no result".to_owned());
        assert_eq!(why(&[user("x"), call.clone()]), no_result);
        assert_eq!(why(&[user("x"), call, user("y")]), no_result);
        let no_call = Some("the result of `b` has no call".to_owned());
        assert_eq!(why(&[user("x"), result("b")]), no_call);
        assert_eq!(why(&[]), Some("nothing is asked".to_owned()));
        let last = Some("the last word is the model's".to_owned());
        assert_eq!(why(&[user("x"), Said::Model(Vec::new())]), last);
    }
}
