//! The table of verbs, as help shows it.

use super::*;

fn every_verb(command: &clap::Command, path: &str, visit: &mut dyn FnMut(&str, &clap::Command)) {
    for verb in command.get_subcommands() {
        let path = format!("{path} {}", verb.get_name());
        visit(&path, verb);
        every_verb(verb, &path, visit);
    }
}

#[test]
fn the_table_is_sound() {
    Line::command().debug_assert();
}

#[test]
fn every_verb_shows_an_example_of_itself() {
    let mut seen = 0;
    every_verb(&Line::command(), "box", &mut |path, verb| {
        if verb.is_hide_set() {
            return;
        }
        seen += 1;
        let help = verb
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!(help.contains("Example"), "{path} shows no example");
        assert!(
            help.lines().any(|line| line.contains(path)),
            "{path} is not in its own example"
        );
        assert!(
            verb.get_about().is_some(),
            "{path} does not say what it does"
        );
    });
    assert!(seen > 20, "only {seen} verbs");
}

#[test]
fn examples_are_command_lines_that_work() {
    let mut tried = 0;
    every_verb(&Line::command(), "box", &mut |_, verb| {
        let help = verb
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        for line in help.lines().filter(|line| line.starts_with("  ")) {
            let ours = line.find("box ").map(|at| &line[at..]).unwrap_or_default();
            let ours = ours.split(" < ").next().unwrap_or_default();
            let ours = ours.split(" | ").next().unwrap_or_default();
            let ours = ours.split(" > ").next().unwrap_or_default();
            let words = words(ours);
            if let Err(error) = Line::try_parse_from(&words) {
                panic!("{words:?}: {error}");
            }
            tried += 1;
        }
    });
    assert!(tried > 25, "only {tried} examples");
}

/// Words of a command line with double quotes.
fn words(line: &str) -> Vec<String> {
    let pieces = line.split('"').enumerate();
    let words = pieces.flat_map(|(index, piece)| {
        if index % 2 == 1 {
            vec![piece.to_owned()]
        } else {
            piece.split_whitespace().map(str::to_owned).collect()
        }
    });
    words.collect()
}
