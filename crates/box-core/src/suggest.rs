//! *Did you mean …?*

/// Names further away than this are not offered, nor those of which more than a third is another.
const DISTANCE_MAX: usize = 2;
const SHARE_MAX: usize = 3;

/// The name of `known` that was probably meant by `typed`.
pub fn nearest<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |name: &str| strsim::damerau_levenshtein(typed, name);
    let near = known.iter().copied().map(|name| (distance(name), name));
    near.filter(|(distance, name)| *distance <= DISTANCE_MAX.min((name.len() / SHARE_MAX).max(1)))
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["demo", "web-shop", "ci"];
        assert_eq!(nearest("dmeo", &known), Some("demo"));
        assert_eq!(nearest("webshop", &known), Some("web-shop"));
        assert_eq!(nearest("production", &known), None);
        assert_eq!(nearest("xy", &known), None);
        assert_eq!(nearest("demand", &known), None);
        assert_eq!(nearest("ca", &known), Some("ci"));
        assert_eq!(nearest("nope", &["copy", "new"]), None);
    }
}
