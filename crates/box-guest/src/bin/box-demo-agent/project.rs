//! The small project the demo works on, in Python, or for `/bin/sh` where there is no Python.

use std::path::Path;

/// Where it lies in the session's folder.
pub(crate) const FOLDER: &str = "demo-calculator";

/// A project with one bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Project {
    /// What it is written in.
    pub(crate) language: &'static str,
    /// File name and content, in the order they are written. The first holds the bug.
    pub(crate) files: [(&'static str, &'static str); 2],
    /// How its tests are run.
    pub(crate) test: &'static [&'static str],
    bug: &'static str,
}

/// What happens when something is divided by zero: the question of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByZero {
    Error,
    Nothing,
}

impl ByZero {
    /// The one taken when nobody answers.
    pub(crate) const DEFAULT: Self = Self::Error;
    pub(crate) const ALL: [Self; 2] = [Self::Error, Self::Nothing];

    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Nothing => "nothing",
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Error => "Report an error",
            Self::Nothing => "Give nothing",
        }
    }

    pub(crate) fn parse(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.id() == id)
    }
}

impl Project {
    pub(crate) const PYTHON: Self = Self {
        language: "Python",
        files: [
            ("calculator.py", PYTHON),
            ("test_calculator.py", PYTHON_TEST),
        ],
        test: &["python3", "-B", "-m", "unittest", "-v"],
        bug: PYTHON_BUG,
    };
    pub(crate) const SHELL: Self = Self {
        language: "shell",
        files: [("calculator.sh", SHELL), ("test_calculator.sh", SHELL_TEST)],
        test: &["/bin/sh", "./test_calculator.sh"],
        bug: SHELL_BUG,
    };

    /// The file with the bug as it should be.
    pub(crate) fn fixed(&self, by_zero: ByZero) -> String {
        let fix = match (self.language, by_zero) {
            ("Python", ByZero::Error) => PYTHON_FIX_ERROR,
            ("Python", ByZero::Nothing) => PYTHON_FIX_NOTHING,
            (_, ByZero::Error) => SHELL_FIX_ERROR,
            (_, ByZero::Nothing) => SHELL_FIX_NOTHING,
        };
        self.files[0].1.replace(self.bug, fix)
    }
}

/// Writes a file, and its folder if that is not there.
pub(crate) fn write(path: &Path, content: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, content))
        .map_err(|error| format!("could not write `{}`: {error}", path.display()))
}

const PYTHON: &str = r#""""A small calculator. Demo – no model."""


def add(a, b):
    return a + b


def divide(a, b):
    return a // b
"#;
const PYTHON_BUG: &str = "    return a // b\n";
const PYTHON_FIX_ERROR: &str = r#"    if b == 0:
        raise ValueError("cannot divide by zero")
    return a / b
"#;
const PYTHON_FIX_NOTHING: &str = r"    if b == 0:
        return None
    return a / b
";
const PYTHON_TEST: &str = r#""""Tests of the calculator. Demo – no model."""

import unittest

from calculator import add, divide


class TestCalculator(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)

    def test_divide(self):
        self.assertEqual(divide(7, 2), 3.5)

    def test_divide_by_zero(self):
        try:
            result = divide(1, 0)
        except ValueError:
            result = None
        self.assertIsNone(result)


if __name__ == "__main__":
    unittest.main()
"#;

const SHELL: &str = r"# A small calculator. Demo – no model.

add() {
    echo $(($1 + $2))
}

divide() {
    echo $(($1 / 0$2))
}
";
const SHELL_BUG: &str = "    echo $(($1 / 0$2))\n";
const SHELL_FIX_ERROR: &str = r#"    if [ "$2" -eq 0 ]; then
        echo "cannot divide by zero" >&2
        return 1
    fi
    echo $(($1 / $2))
"#;
const SHELL_FIX_NOTHING: &str = r#"    if [ "$2" -eq 0 ]; then
        return 0
    fi
    echo $(($1 / $2))
"#;
const SHELL_TEST: &str = r#"# Tests of the calculator. Demo – no model.

. ./calculator.sh
failed=0

check() {
    if [ "$2" = "$3" ]; then
        echo "$1 ... ok"
    else
        echo "$1 ... FAIL: '$2' is not '$3'"
        failed=1
    fi
}

check add "$(add 2 3)" 5
check divide "$(divide 60 12)" 5
check divide_by_zero "$(divide 1 0 2>/dev/null)" ""
exit $failed
"#;

#[cfg(test)]
mod tests {
    use super::{ByZero, Project};

    #[test]
    fn every_fix_changes_the_file_and_nothing_but_the_bug() {
        for project in [Project::PYTHON, Project::SHELL] {
            for by_zero in ByZero::ALL {
                let fixed = project.fixed(by_zero);
                assert_ne!(fixed, project.files[0].1);
                assert!(!fixed.contains(project.bug));
            }
        }
    }

    #[test]
    fn choices_are_found_by_their_ids() {
        for choice in ByZero::ALL {
            assert_eq!(ByZero::parse(choice.id()), Some(choice));
        }
        assert_eq!(ByZero::parse("other"), None);
    }
}
