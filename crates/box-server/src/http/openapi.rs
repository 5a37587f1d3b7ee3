//! `GET /api/openapi.json`: the table of endpoints as an `OpenAPI` 3.1 document.
//!
//! Shapes are the page's TypeScript types of the same names (`ui/src/wire`), which are made from the
//! host's own; the document names them and leaves their insides open.

use super::answer;
use super::call::{Call, Called};
use super::routes::{ROUTES, Route};
use serde_json::{Map, Value, json};

pub(super) async fn handle(call: Call) -> Called {
    Ok(answer::json(&document(&call.host().build)))
}

pub(super) fn document(build: &str) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let mut schemas: Map<String, Value> = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route);
        for name in [route.takes, route.gives] {
            if !name.is_empty() && name != "file" {
                schemas.insert(name.to_owned(), json!({ "type": "object" }));
            }
        }
    }
    schemas.insert("Problem".to_owned(), problem());
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Boxes", "version": build },
        "security": [{ "cookie": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "cookie": { "type": "apiKey", "in": "cookie", "name": "box_2697" } },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "summary": route.about,
        "responses": {
            route.status.to_string(): content(route.gives, "application/json"),
            "401": content("Problem", "application/problem+json"),
            "default": content("Problem", "application/problem+json"),
        },
    });
    let names = route.path.split('/').filter_map(|segment| {
        let name = segment.strip_prefix('{')?.strip_suffix('}')?;
        Some(
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }),
        )
    });
    let names: Vec<Value> = names.collect();
    if !names.is_empty() {
        operation["parameters"] = Value::Array(names);
    }
    if !route.takes.is_empty() {
        let kind = if route.takes == "file" {
            "application/octet-stream"
        } else {
            "application/json"
        };
        operation["requestBody"] = content(route.takes, kind);
    }
    operation
}

fn content(name: &str, kind: &str) -> Value {
    match name {
        "" => json!({ "description": "Nothing" }),
        "file" => json!({ "content": { kind: {} } }),
        name => json!({
            "description": name,
            "content": { kind: { "schema": { "$ref": format!("#/components/schemas/{name}") } } },
        }),
    }
}

/// RFC 9457
fn problem() -> Value {
    json!({
        "type": "object",
        "required": ["type", "kind", "title"],
        "properties": {
            "type": { "type": "string" },
            "kind": { "enum": ["failed", "usage", "refused", "engine"] },
            "title": { "type": "string" },
            "cause": { "type": "string" },
            "hint": { "type": "string" },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_is_described() {
        let document = document("build");
        for route in ROUTES {
            let method = route.method.as_str().to_ascii_lowercase();
            let described = &document["paths"][route.path][&method];
            assert_eq!(described["summary"], route.about, "{}", route.path);
            let names = route.path.matches('{').count();
            let listed = described["parameters"].as_array().map_or(0, Vec::len);
            assert_eq!(names, listed, "{}", route.path);
        }
    }
}
