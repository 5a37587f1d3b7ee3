//! What a request to GitHub's GraphQL interface does. A query reads; of the mutations those pass
//! whose target can be read off; anything unclear is a mutation that does not. Pure.

mod token;

use super::json::Json;
use super::refs::{self, Change};
use super::why::Why;
use box_api::egress::github::{GithubScope, Repository};
use token::{Token, tokens};

/// Deepest nesting of values and selections.
const DEPTH_MAX: usize = 64;

/// Judges the body of `POST /graphql`.
pub(crate) fn judge(scope: &GithubScope, body: &[u8]) -> Result<(), Why> {
    let unclear = Why::Unclear("this is no GraphQL request that can be judged");
    let request = Json::read(body).ok_or_else(|| unclear.clone())?;
    // A list would be several requests, a hash in `extensions` one that is kept elsewhere.
    let fields = request.fields().ok_or_else(|| unclear.clone())?;
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("query", Json::Text(_))
            | ("variables", Json::Object(_) | Json::Null)
            | ("operationName", Json::Text(_) | Json::Null)
            | ("extensions", Json::Null) => {}
            _ => return Err(unclear),
        }
    }
    let document = request.get("query").and_then(Json::text);
    let variables = request.get("variables").unwrap_or(&Json::Null);
    judge_document(scope, document.ok_or(unclear)?, variables)
}

/// Judges every operation of a document, whichever is named: all must be allowed.
pub(crate) fn judge_document(
    scope: &GithubScope,
    document: &str,
    variables: &Json,
) -> Result<(), Why> {
    let unclear = || Why::Unclear("this is no GraphQL document that can be judged");
    let tokens = tokens(document).ok_or_else(unclear)?;
    let mut parser = Parser { tokens: &tokens };
    if parser.tokens.is_empty() {
        return Err(unclear());
    }
    while let Some(first) = parser.tokens.first() {
        match first {
            Token::Sign('{') => parser.pass_group().ok_or_else(unclear)?,
            Token::Name(word) if word == "query" || word == "fragment" => {
                parser.pass_definition().ok_or_else(unclear)?;
            }
            Token::Name(word) if word == "mutation" => {
                let fields = parser.mutation().ok_or(Why::Unclear(
                    "only a plain `createCommitOnBranch` of all mutations can be judged; \
                     take the REST interface",
                ))?;
                fields.iter().try_for_each(|field| {
                    let (repository, name) = target(field, variables)?;
                    refs::judge(scope, &repository, &name, Change::Forward).map(drop)
                })?;
            }
            Token::Name(_) | Token::Text(_) | Token::Number | Token::Spread | Token::Sign(_) => {
                return Err(unclear());
            }
        }
    }
    Ok(())
}

/// The repository and branch of a `createCommitOnBranch`.
fn target(input: &Value, variables: &Json) -> Result<(Repository, String), Why> {
    let unclear = || {
        Why::Unclear(
            "`branch` is given by `repositoryNameWithOwner` and `branchName`, as plain text",
        )
    };
    let read = || {
        let input = input.resolved(variables)?;
        let branch = input.get("branch")?.resolved(variables)?;
        let mut names = branch.names()?;
        names.sort_unstable();
        if names != ["branchName", "repositoryNameWithOwner"] {
            return None;
        }
        let text = |name: &str| branch.get(name)?.resolved(variables)?.text();
        Some((text("repositoryNameWithOwner")?, text("branchName")?))
    };
    let (repository, branch) = read().ok_or_else(unclear)?;
    let repository = Repository::parse(&repository).map_err(|_| unclear())?;
    Ok((repository, refs::branch(&branch)?))
}

/// A value as the document or the variables have it.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Variable(String),
    Text(String),
    Object(Vec<(String, Self)>),
    /// Whatever else, which decides nothing.
    Other,
    Given(Json),
}

impl Value {
    /// What a variable stands for; anything else as it is.
    fn resolved(&self, variables: &Json) -> Option<Self> {
        match self {
            Self::Variable(name) => variables.get(name).cloned().map(Self::Given),
            Self::Text(_) | Self::Object(_) | Self::Other | Self::Given(_) => Some(self.clone()),
        }
    }

    fn get(&self, name: &str) -> Option<Self> {
        match self {
            Self::Object(fields) => {
                let field = fields.iter().find(|(own, _)| own == name)?;
                Some(field.1.clone())
            }
            Self::Given(json) => json.get(name).cloned().map(Self::Given),
            Self::Variable(_) | Self::Text(_) | Self::Other => None,
        }
    }

    fn names(&self) -> Option<Vec<&str>> {
        match self {
            Self::Object(fields) => Some(fields.iter().map(|(name, _)| name.as_str()).collect()),
            Self::Given(json) => Some(
                json.fields()?
                    .iter()
                    .map(|(name, _)| name.as_str())
                    .collect(),
            ),
            Self::Variable(_) | Self::Text(_) | Self::Other => None,
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Given(json) => json.text().map(str::to_owned),
            Self::Variable(_) | Self::Object(_) | Self::Other => None,
        }
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
}

impl Parser<'_> {
    fn next(&mut self) -> Option<&Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn sign(&mut self, sign: char) -> Option<()> {
        (self.next()? == &Token::Sign(sign)).then_some(())
    }

    fn is_at(&self, sign: char) -> bool {
        self.tokens.first() == Some(&Token::Sign(sign))
    }

    fn name(&mut self) -> Option<String> {
        match self.next()? {
            Token::Name(name) => Some(name.clone()),
            Token::Text(_) | Token::Number | Token::Spread | Token::Sign(_) => None,
        }
    }

    /// Brackets with all that is in them.
    fn pass_group(&mut self) -> Option<()> {
        let mut open = Vec::new();
        loop {
            let sign = match self.next()? {
                Token::Sign(sign) => *sign,
                Token::Name(_) | Token::Text(_) | Token::Number | Token::Spread => ' ',
            };
            match sign {
                '{' => open.push('}'),
                '(' => open.push(')'),
                '[' => open.push(']'),
                '}' | ')' | ']' => (open.pop() == Some(sign)).then_some(())?,
                _ => {}
            }
            if open.is_empty() {
                return Some(());
            }
            (open.len() <= DEPTH_MAX).then_some(())?;
        }
    }

    /// Everything up to the selection of a definition, and the selection.
    fn pass_definition(&mut self) -> Option<()> {
        self.pass_head()?;
        self.pass_group()
    }

    /// A keyword, a name, variables and directives: up to the brace that opens the selection.
    fn pass_head(&mut self) -> Option<()> {
        if self.name()? == "fragment" {
            self.name()?;
            (self.name()? == "on").then_some(())?;
            self.name()?;
        } else if matches!(self.tokens.first(), Some(Token::Name(_))) {
            self.name()?;
        }
        if self.is_at('(') {
            self.pass_group()?;
        }
        while self.is_at('@') {
            self.sign('@')?;
            self.name()?;
            if self.is_at('(') {
                self.pass_group()?;
            }
        }
        self.is_at('{').then_some(())
    }

    /// The inputs of a mutation that makes commits and does nothing else.
    fn mutation(&mut self) -> Option<Vec<Value>> {
        self.pass_head()?;
        self.sign('{')?;
        let mut inputs = Vec::new();
        while !self.is_at('}') {
            let mut name = self.name()?;
            if self.is_at(':') {
                self.sign(':')?;
                name = self.name()?;
            }
            if name != "createCommitOnBranch" {
                return None;
            }
            self.sign('(')?;
            if self.name()? != "input" {
                return None;
            }
            self.sign(':')?;
            inputs.push(self.value(DEPTH_MAX)?);
            self.sign(')')?;
            if !self.is_at('{') {
                return None;
            }
            self.pass_group()?;
        }
        self.sign('}')?;
        (!inputs.is_empty()).then_some(inputs)
    }

    fn value(&mut self, left: usize) -> Option<Value> {
        if left == 0 {
            return None;
        }
        if self.is_at('[') {
            self.pass_group()?;
            return Some(Value::Other);
        }
        match self.next()? {
            Token::Sign('$') => self.name().map(Value::Variable),
            Token::Text(text) => Some(text.clone().map_or(Value::Other, Value::Text)),
            Token::Number | Token::Name(_) => Some(Value::Other),
            Token::Sign('{') => self.object(left),
            Token::Sign(_) | Token::Spread => None,
        }
    }

    fn object(&mut self, left: usize) -> Option<Value> {
        let mut fields: Vec<(String, Value)> = Vec::new();
        while !self.is_at('}') {
            let name = self.name()?;
            self.sign(':')?;
            let value = self.value(left - 1)?;
            if fields.iter().any(|(own, _)| *own == name) {
                return None;
            }
            fields.push((name, value));
        }
        self.sign('}')?;
        Some(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests;
