//! A question and its answer.

use super::{backlog, redact};
use crate::boxes::{self, FindError};
use crate::caller::Caller;
use crate::host::Host;
use crate::store::StoreError;
use box_api::search::{
    Found, HITS_MAX, Hit, SearchAsk, SearchKind, SearchOrder, SnippetPart, WORDS_BYTES_MAX,
};
use box_api::{BoxId, BoxName, Owner, ThreadId};
use rusqlite::{Connection, Row, types::Type};

/// What the database puts around a word that was found: characters for private use.
const FOUND: (char, char) = ('\u{f000}', '\u{f001}');
/// Words of one question.
const WORDS_MAX: usize = 16;

/// Why nothing was looked for.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error("there is no word to look for")]
    NoWord,
    #[error("a question has at most {WORDS_BYTES_MAX} bytes and {WORDS_MAX} words")]
    TooLong,
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Looks for words in what was said and done in the caller's own boxes, and in nobody else's,
/// whoever the caller is. What is in the trash is not found.
///
/// # Errors
/// [`SearchError`]
pub async fn search(host: &Host, caller: &Caller, asked: SearchAsk) -> Result<Found, SearchError> {
    let words = expression(&asked.words)?;
    let box_id = match &asked.name {
        Some(name) => Some(boxes::find(host, caller, name).await?.id),
        None => None,
    };
    let question = Question {
        owner: caller.owner,
        words,
        box_id,
        thread: asked.thread,
        kind: asked.kind,
        order: asked.order,
        limit: asked.limit.clamp(1, HITS_MAX),
    };
    let found = host.store.read(move |tables| answer(tables, &question));
    Ok(found.await?)
}

/// A question as the tables take it.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) owner: Owner,
    /// An FTS5 expression; see [`expression`].
    pub(super) words: String,
    pub(super) box_id: Option<BoxId>,
    pub(super) thread: Option<ThreadId>,
    pub(super) kind: Option<SearchKind>,
    pub(super) order: SearchOrder,
    pub(super) limit: u32,
}

/// Every word quoted, so that none of it is syntax (<https://sqlite.org/fts5.html#full_text_query_syntax>);
/// the last may be the beginning of one.
pub(super) fn expression(words: &str) -> Result<String, SearchError> {
    let mut all: Vec<&str> = Vec::new();
    // Every second piece was between quotes.
    for (index, piece) in words.split('"').enumerate() {
        if index % 2 == 1 {
            all.push(piece);
        } else {
            all.extend(piece.split_whitespace());
        }
    }
    all.retain(|word| word.chars().any(char::is_alphanumeric));
    if words.len() > WORDS_BYTES_MAX || all.len() > WORDS_MAX {
        return Err(SearchError::TooLong);
    }
    if all.is_empty() {
        return Err(SearchError::NoWord);
    }
    let quoted = all
        .iter()
        .map(|word| format!("\"{}\"", word.replace('\0', " ")));
    Ok(quoted.collect::<Vec<_>>().join(" AND ") + " *")
}

pub(super) fn answer(tables: &Connection, question: &Question) -> rusqlite::Result<Found> {
    let order = match question.order {
        SearchOrder::Relevance => "rank, docs.id DESC",
        SearchOrder::Newest => "docs.at_ms DESC, docs.id DESC",
    };
    let sql = format!(
        "SELECT boxes.id, boxes.name, threads.id, threads.title, threads.agent, docs.epoch, \
         docs.seq, docs.at_ms, docs.kind, snippet(search_words, 0, ?7, ?8, '…', 16) \
         FROM search_words JOIN search_docs AS docs ON docs.id = search_words.rowid \
         JOIN threads ON threads.id = docs.thread AND threads.epoch = docs.epoch \
         JOIN boxes ON boxes.id = threads.box_id \
         WHERE search_words MATCH ?1 AND boxes.owner = ?2 AND threads.owner = ?2 \
         AND boxes.state NOT IN ('trashed', 'removing') \
         AND (?3 IS NULL OR boxes.id = ?3) AND (?4 IS NULL OR threads.id = ?4) \
         AND (?5 IS NULL OR docs.kind = ?5) ORDER BY {order} LIMIT ?6"
    );
    let mut statement = tables.prepare_cached(&sql)?;
    let rows = statement.query_map(
        (
            &question.words,
            question.owner.to_string(),
            question.box_id.as_ref().map(BoxId::as_str),
            question.thread.as_ref().map(ThreadId::as_str),
            question.kind.map(SearchKind::word),
            question.limit + 1,
            FOUND.0.to_string(),
            FOUND.1.to_string(),
        ),
        hit,
    )?;
    let mut hits: Vec<Hit> = rows.collect::<rusqlite::Result<_>>()?;
    let limit = usize::try_from(question.limit).unwrap_or(usize::MAX);
    let more = hits.len() > limit;
    hits.truncate(limit);
    Ok(Found {
        hits,
        more,
        threads_left: backlog::left(tables)?,
    })
}

fn hit(row: &Row<'_>) -> rusqlite::Result<Hit> {
    let text = |column: usize| row.get::<_, String>(column);
    let kind = SearchKind::parse(&text(8)?);
    Ok(Hit {
        box_id: BoxId::try_from(text(0)?).map_err(|error| unreadable(0, error))?,
        name: BoxName::parse(&text(1)?).map_err(|error| unreadable(1, error))?,
        thread: ThreadId::try_from(text(2)?).map_err(|error| unreadable(2, error))?,
        // It begins as the first prompt does.
        title: redact::redacted(text(3)?),
        agent: text(4)?,
        epoch: row.get(5)?,
        seq: row.get(6)?,
        at_ms: row.get(7)?,
        kind: kind.map_err(|should| unreadable(8, std::io::Error::other(should)))?,
        snippet: parts(&text(9)?),
    })
}

/// A snippet in pieces, its lines made one.
fn parts(snippet: &str) -> Vec<SnippetPart> {
    let mut parts = Vec::new();
    let mut found = false;
    for piece in snippet.split_inclusive([FOUND.0, FOUND.1]) {
        let text = piece.trim_end_matches([FOUND.0, FOUND.1]);
        let text: String = text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        if !text.is_empty() {
            parts.push(SnippetPart { text, found });
        }
        found = piece.ends_with(FOUND.0);
    }
    parts
}

fn unreadable(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}
