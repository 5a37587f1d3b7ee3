//! Figures of usage as the vendors give them, whole and as events, and bodies that lie.

use super::*;

fn headers(kind: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
    headers
}

/// What is read of an answer that comes in pieces of a few bytes.
fn seen(kind: &str, answer: &str) -> Seen {
    let mut reading = reading(&headers(kind));
    for piece in answer.as_bytes().chunks(7) {
        match &mut reading {
            Reading::Json(scanner, seen) => {
                scanner.feed(piece, &mut |path, value| seen.take(path, &value));
            }
            Reading::Events(lines, seen) => {
                lines.feed(piece, &mut |path, value| seen.take(path, &value));
            }
            Reading::Unread => {}
        }
    }
    match reading {
        Reading::Json(_, seen) | Reading::Events(_, seen) => seen,
        Reading::Unread => Seen::default(),
    }
}

fn cost(kind: &str, answer: &str) -> (String, Tokens) {
    let seen = seen(kind, answer);
    assert!(seen.any, "{answer}");
    (seen.model.clone(), seen.tokens())
}

const fn tokens(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Tokens {
    Tokens {
        input,
        output,
        cache_read,
        cache_write,
    }
}

const JSON: &str = "application/json; charset=utf-8";
const EVENTS: &str = "text/event-stream; charset=utf-8";

#[test]
fn a_message_of_anthropic_is_read_whole_and_as_a_stream() {
    let usage = r#""usage":{"input_tokens":12,"cache_creation_input_tokens":7,"cache_read_input_tokens":900,"output_tokens":3,"service_tier":"standard"}"#;
    let whole = format!(
        r#"{{"model":"claude-x","id":"m","content":[{{"type":"text","text":"\"usage\":{{\"input_tokens\":99}}"}}],{usage}}}"#
    );
    let expected = ("claude-x".to_owned(), tokens(12, 3, 900, 7));
    assert_eq!(cost(JSON, &whole), expected);
    let stream = format!(
        "event: message_start\ndata: {{\"type\":\"message_start\",\"message\":{{\"model\":\"claude-x\",\"content\":[],{usage}}}}}\n\n\
         event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"delta\":{{\"text\":\"usage 5\"}}}}\n\n\
         event: message_delta\ndata: {{\"type\":\"message_delta\",\"delta\":{{}},\"usage\":{{\"output_tokens\":41}}}}\n\n"
    );
    assert_eq!(
        cost(EVENTS, &stream),
        ("claude-x".to_owned(), tokens(12, 41, 900, 7))
    );
}

#[test]
fn an_answer_of_openai_is_read_with_what_was_cached_taken_out_of_its_input() {
    let usage = r#""usage":{"input_tokens":1000,"input_tokens_details":{"cached_tokens":600},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":40},"total_tokens":1050}"#;
    let expected = ("gpt-x".to_owned(), tokens(400, 50, 600, 0));
    let whole = format!(r#"{{"id":"r","model":"gpt-x","output":[],{usage}}}"#);
    assert_eq!(cost(JSON, &whole), expected);
    let stream = format!(
        "data: {{\"type\":\"response.created\",\"response\":{{\"model\":\"gpt-x\",\"usage\":null}}}}\n\n\
         data: {{\"type\":\"response.completed\",\"response\":{{\"model\":\"gpt-x\",\"output\":[{{\"text\":\"{}\"}}],{usage}}}}}\n\n",
        "long ".repeat(100_000)
    );
    assert_eq!(cost(EVENTS, &stream), expected);
    let chat = r#"data: {"model":"gpt-y","choices":[{"delta":{"content":"a"}}],"usage":null}

data: {"model":"gpt-y","choices":[],"usage":{"prompt_tokens":30,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":10}}}

data: [DONE]

"#;
    assert_eq!(
        cost(EVENTS, chat),
        ("gpt-y".to_owned(), tokens(20, 5, 10, 0))
    );
}

#[test]
fn an_answer_of_gemini_is_read_in_each_of_its_forms() {
    let usage = r#""usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":8,"thoughtsTokenCount":4,"cachedContentTokenCount":30,"totalTokenCount":112},"modelVersion":"gemini-x""#;
    let expected = ("gemini-x".to_owned(), tokens(70, 12, 30, 0));
    let one = format!(r#"{{"candidates":[],{usage}}}"#);
    assert_eq!(cost(JSON, &one), expected);
    let list = format!(r#"[{{"candidates":[{{"index":0}}]}},{one}]"#);
    assert_eq!(cost(JSON, &list), expected);
    let events = format!("data: {one}\r\n\r\ndata: {{\"response\":{one}}}\r\n\r\n");
    assert_eq!(cost(EVENTS, &events), expected);
}

#[test]
fn an_answer_without_figures_is_told_as_such() {
    for (kind, answer) in [
        (JSON, "{\"model\":\"m\"}"),
        (JSON, "usage"),
        (EVENTS, "data: [DONE]\n\n"),
        (
            JSON,
            "{\"usage\":{\"input_tokens\":-3,\"output_tokens\":1.5}}",
        ),
        ("text/html", "{\"usage\":{\"input_tokens\":3}}"),
    ] {
        assert!(!seen(kind, answer).any, "{answer}");
    }
    let mut packed = headers(JSON);
    packed.insert(header::CONTENT_ENCODING, "gzip".parse().unwrap());
    assert!(matches!(reading(&packed), Reading::Unread));
}

#[test]
fn a_name_of_a_model_is_short_and_steers_nothing() {
    let mut seen = Seen::default();
    seen.take(&["model"], &Value::Text("claude\u{1b}[2J-x\u{202e}"));
    assert_eq!(seen.model, "claude[2J-x");
    let long = "m".repeat(120);
    seen.take(&["model"], &Value::Text(&long));
    assert_eq!(seen.model.len(), MODEL_BYTES_MAX);
}

#[test]
fn models_are_asked_at_known_paths_alone() {
    for path in [
        "/v1/messages",
        "/v1/responses",
        "/backend-api/codex/responses",
        "/gateway/openai/v1/chat/completions",
        "/v1beta/models/gemini-x:generateContent",
        "/v1internal:streamGenerateContent",
    ] {
        assert!(asks_a_model(path), "{path}");
    }
    for path in [
        "/v1/messages/count_tokens",
        "/v1/models",
        "/repos/a/b",
        "/v1/responses/r_1/cancel",
    ] {
        assert!(!asks_a_model(path), "{path}");
    }
}
