//! `GET /api/openapi.json`: the table of endpoints as an `OpenAPI` 3.1 document.
//!
//! Shapes come from the host's own types ([`SCHEMAS`]); names in paths and queries are described here,
//! once each.

use super::answer;
use super::call::{Call, Called};
use super::routes::{ROUTES, Route};
use box_api::page::{SCHEMAS, WAIT_S_MAX};
use serde_json::{Map, Value, json};

/// Version of the interface below `/api`. Within one, fields and endpoints are only added.
const VERSION: &str = "1";
/// A file in a body, as the table of endpoints names it.
const FILE: &str = "file";

/// What every endpoint may answer beside what it gives: status, when.
const PROBLEMS: [(u16, &str); 10] = [
    (400, "The request is not what it should be"),
    (401, "Nobody is signed in, or the token stands for nobody"),
    (403, "Refused"),
    (404, "What it is about is not there"),
    (405, "The path does not take this method"),
    (409, "It would work in another state of the thing"),
    (421, "This host does not go by the name that was asked for"),
    (422, "It could not be done as it was asked"),
    (429, "There were too many requests"),
    (503, "The engine does not do it now"),
];

/// Names of queries: path, name, schema, whether it must be there.
type Asked = (&'static str, &'static str, fn() -> Value, Need);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Must,
    May,
}

const QUERIES: [Asked; 11] = [
    ("/api/boxes/{box}/threads", "archived", flag, Need::May),
    ("/api/threads", "archived", flag, Need::May),
    ("/api/boxes/{box}/files", "name", text, Need::Must),
    ("/api/boxes/{box}/workspace", "find", text, Need::May),
    ("/api/boxes/{box}/net", "since_ms", number, Need::May),
    ("/api/threads/{thread}/log", "epoch", number, Need::May),
    ("/api/threads/{thread}/log", "seq", number, Need::May),
    ("/api/threads/{thread}/log", "bytes", number, Need::May),
    ("/api/threads/{thread}/log", "wait", seconds, Need::May),
    ("/api/threads/{thread}/rows", "before", number, Need::May),
    ("/api/threads/{thread}/rows", "epoch", number, Need::May),
];

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn text() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 255 })
}

fn number() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
}

fn seconds() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": WAIT_S_MAX })
}

pub(super) async fn handle(call: Call) -> Called {
    Ok(answer::json(&document(
        &call.host().build,
        call.web.guard.port(),
    )))
}

pub(super) fn document(build: &str, port: u16) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route);
    }
    // What is compiled in was written by a test from the types.
    let schemas: Value = serde_json::from_str(SCHEMAS).unwrap_or_default();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Boxes",
            "version": VERSION,
            "description": format!("Build {build}. Within a version, fields and endpoints are only added."),
        },
        "security": [{ "token": [] }, { "cookie": [], "proof": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "cookie": { "type": "apiKey", "in": "cookie", "name": format!("box_{port}") },
                "proof": { "type": "apiKey", "in": "header", "name": "x-box-proof" },
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut responses = json!({ route.status.to_string(): content(route.gives, route.about) });
    for (status, when) in PROBLEMS {
        responses[status.to_string()] = json!({
            "description": when,
            "content": { "application/problem+json": { "schema": reference("Problem") } },
        });
    }
    let mut operation = json!({
        "summary": route.about,
        "operationId": id(route),
        "responses": responses,
    });
    let mut parameters: Vec<Value> = named(route).collect();
    parameters.extend(queries(route));
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if !route.takes.is_empty() {
        operation["requestBody"] = content(route.takes, route.about);
        operation["requestBody"]["required"] = json!(!may_be_left_out(route.takes));
    }
    operation
}

/// `POST /api/boxes/{box}/start`: `post_boxes_box_start`.
fn id(route: &Route) -> String {
    let path = route.path.trim_start_matches("/api/");
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let words: String = path.chars().map(word).collect();
    let parts: Vec<&str> = words.split('_').filter(|part| !part.is_empty()).collect();
    let method = route.method.as_str().to_ascii_lowercase();
    format!("{method}_{}", parts.join("_"))
}

/// Bodies whose absence means that nothing special is wanted.
fn may_be_left_out(name: &str) -> bool {
    let schemas: Value = serde_json::from_str(SCHEMAS).unwrap_or_default();
    let required = schemas[name]["required"].as_array();
    schemas[name]["type"] == "object" && required.is_none_or(Vec::is_empty)
}

fn named(route: &Route) -> impl Iterator<Item = Value> {
    let names = route.path.split('/').filter_map(|segment| {
        let name = segment.strip_prefix('{')?.strip_suffix('}')?;
        Some((name, place(route.path, name)))
    });
    names.map(
        |(name, schema)| json!({ "name": name, "in": "path", "required": true, "schema": schema }),
    )
}

/// What stands in a path under a name.
fn place(path: &str, name: &str) -> Value {
    match name {
        "thread" => reference("ThreadId"),
        "label" => reference("Label"),
        "box" => json!({
            "type": "string",
            "pattern": "^[a-z0-9][a-z0-9-]{0,62}$",
            "description": "A box's id or its name",
        }),
        "seq" => number(),
        "id" if path.starts_with("/api/decisions/") => number(),
        "id" if path.starts_with("/api/trash/") => reference("BoxId"),
        _ => json!({ "type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$" }),
    }
}

fn queries(route: &Route) -> impl Iterator<Item = Value> {
    let path = route.path;
    let own = QUERIES.iter().filter(move |(of, ..)| *of == path);
    let own = own.filter(|(_, name, ..)| *name != "archived" || route.method == "GET");
    own.map(|(_, name, schema, need)| {
        json!({
            "name": name, "in": "query", "required": *need == Need::Must, "schema": schema(),
        })
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn content(name: &str, about: &str) -> Value {
    match name {
        "" => json!({ "description": about }),
        FILE => json!({
            "description": about,
            "content": { "application/octet-stream": {
                "schema": { "type": "string", "format": "binary" },
            } },
        }),
        "OpenApi" => json!({
            "description": about,
            "content": { "application/json": { "schema": { "type": "object" } } },
        }),
        name => json!({
            "description": about,
            "content": { "application/json": { "schema": reference(name) } },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_endpoint_is_described() {
        let document = document("build", 2697);
        let mut ids = BTreeSet::new();
        for route in ROUTES {
            let method = route.method.as_str().to_ascii_lowercase();
            let described = &document["paths"][route.path][&method];
            assert_eq!(described["summary"], route.about, "{}", route.path);
            let listed = described["parameters"].as_array();
            let in_path = listed
                .into_iter()
                .flatten()
                .filter(|one| one["in"] == "path");
            assert_eq!(
                route.path.matches('{').count(),
                in_path.count(),
                "{}",
                route.path
            );
            assert!(ids.insert(id(route)), "two endpoints are `{}`", id(route));
        }
    }

    /// Every body has a schema with insides, and no reference leads nowhere.
    #[test]
    fn every_body_is_described_to_its_leaves() {
        let document = document("build", 2697);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let bodies = ROUTES
            .iter()
            .flat_map(|route| [route.takes, route.gives].map(|name| (route.path, name)));
        let free = ["", FILE, "OpenApi"];
        for (path, name) in bodies.filter(|(_, name)| !free.contains(name)) {
            let schema = &schemas[name];
            let inside = ["properties", "oneOf", "anyOf", "enum"];
            assert!(
                inside.iter().any(|key| schema.get(*key).is_some()),
                "`{name}` of {path} has no insides: {schema}"
            );
        }
        let text = document.to_string();
        let mut followed = 0;
        for part in text.split("\"#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "nothing is called `{name}`");
            followed += 1;
        }
        assert!(followed > 100, "only {followed} references");
    }

    #[test]
    fn names_of_queries_belong_to_endpoints() {
        for (path, name, ..) in QUERIES {
            assert!(
                ROUTES.iter().any(|route| route.path == path),
                "`{name}` belongs to no endpoint"
            );
        }
    }
}
