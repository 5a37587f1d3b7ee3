//! JSON in which no name stands twice: two readers of it read the same.

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// As deep as anything GitHub takes.
const DEPTH_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    Null,
    Yes,
    No,
    /// Numbers decide nothing here.
    Number,
    Text(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Json {
    /// Whole, or nothing: what is no JSON, names something twice or goes on behind its end.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let value: Self = serde_json::from_slice(bytes).ok()?;
        value.is_shallow(DEPTH_MAX).then_some(value)
    }

    fn is_shallow(&self, left: usize) -> bool {
        match self {
            Self::Null | Self::Yes | Self::No | Self::Number | Self::Text(_) => true,
            Self::List(values) => left > 0 && values.iter().all(|value| value.is_shallow(left - 1)),
            Self::Object(fields) => {
                left > 0 && fields.iter().all(|(_, value)| value.is_shallow(left - 1))
            }
        }
    }

    pub(crate) fn fields(&self) -> Option<&[(String, Self)]> {
        match self {
            Self::Object(fields) => Some(fields),
            Self::Null | Self::Yes | Self::No | Self::Number | Self::Text(_) | Self::List(_) => {
                None
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let (_, value) = self.fields()?.iter().find(|(own, _)| own == name)?;
        Some(value)
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Yes | Self::No | Self::Number | Self::List(_) | Self::Object(_) => {
                None
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, yes: bool) -> Result<Json, E> {
        Ok(if yes { Json::Yes } else { Json::No })
    }

    fn visit_i64<E>(self, _: i64) -> Result<Json, E> {
        Ok(Json::Number)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Json, E> {
        Ok(Json::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Number)
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Json::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut all: Vec<(String, Json)> = Vec::new();
        let mut names = std::collections::HashSet::new();
        while let Some((name, value)) = items.next_entry::<String, Json>()? {
            if !names.insert(name.clone()) {
                return Err(A::Error::custom("a name stands twice"));
            }
            all.push((name, value));
        }
        Ok(Json::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_stands_twice_is_no_json() {
        let read = |text: &str| Json::read(text.as_bytes());
        let value = read(r#"{"branch":"x","n":[1,2.5,null,true]}"#).unwrap();
        assert_eq!(value.get("branch").and_then(Json::text), Some("x"));
        for text in [
            r#"{"branch":"x","branch":"y"}"#,
            "{\"branch\":\"x\",\"br\\u0061nch\":\"y\"}",
            r#"{"a":{"b":1,"b":2}}"#,
            r#"{"branch":"x"} {"branch":"y"}"#,
            "{branch:'x'}",
            "branch=x",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(&("[".repeat(100) + &"]".repeat(100))), None);
    }
}
