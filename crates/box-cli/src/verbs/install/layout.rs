//! What is installed and where: for the whole machine below /usr/local, for a user below ~/.local.

use super::unit;
use crate::verbs::completion::{self, ShellName};
use crate::verbs::man;
use std::io;
use std::path::{Path, PathBuf};

/// Whose `box` it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Machine,
    User,
}

/// Where things go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) scope: Scope,
    /// Put before every path, as packagers do; `/` for this machine.
    pub(crate) root: PathBuf,
    pub(crate) prefix: PathBuf,
    /// Where units, and completions of fish, are looked for.
    units: PathBuf,
    fish: PathBuf,
}

/// A file to be.
#[derive(Debug)]
pub(crate) struct Item {
    /// As it is called on the machine, without [`Layout::root`].
    pub(crate) path: PathBuf,
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    /// This very program.
    Program,
    Text(Vec<u8>),
}

impl Layout {
    /// The usual places, or those below another prefix, where no manager of services looks.
    pub(crate) fn new(scope: Scope, root: &Path, prefix: Option<&Path>, home: &Path) -> Self {
        let usual = match scope {
            Scope::Machine => PathBuf::from("/usr/local"),
            Scope::User => home.join(".local"),
        };
        let (units, fish) = match (prefix, scope) {
            (Some(prefix), _) => (
                prefix.join("lib/systemd/system"),
                prefix.join("share/fish/vendor_completions.d"),
            ),
            (None, Scope::Machine) => (
                "/etc/systemd/system".into(),
                usual.join("share/fish/vendor_completions.d"),
            ),
            (None, Scope::User) => (
                home.join(".config/systemd/user"),
                home.join(".config/fish/completions"),
            ),
        };
        Self {
            scope,
            root: root.to_owned(),
            prefix: prefix.unwrap_or(&usual).to_owned(),
            units,
            fish,
        }
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.prefix.join("bin/box")
    }

    pub(crate) fn unit(&self) -> PathBuf {
        self.units.join(unit::NAME)
    }

    /// Says what was installed, so that exactly that goes again.
    pub(crate) fn list(&self) -> PathBuf {
        self.prefix.join("share/box/installed")
    }

    /// Where a path of the machine lies now.
    pub(crate) fn on_disk(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Everything but the list.
    ///
    /// # Errors
    /// When a page of the manual cannot be made.
    pub(crate) fn items(&self) -> io::Result<Vec<Item>> {
        let text = |path: PathBuf, text: Vec<u8>| Item {
            path,
            content: Content::Text(text),
        };
        let share = self.prefix.join("share");
        let mut items = vec![
            Item {
                path: self.program(),
                content: Content::Program,
            },
            text(self.unit(), unit::text(self.scope, &self.program()).into()),
            text(
                share.join("bash-completion/completions/box"),
                completion::script(ShellName::Bash),
            ),
            text(
                share.join("zsh/site-functions/_box"),
                completion::script(ShellName::Zsh),
            ),
            text(
                self.fish.join("box.fish"),
                completion::script(ShellName::Fish),
            ),
        ];
        let manual = share.join("man/man1");
        let pages = man::pages()?.into_iter();
        items.extend(pages.map(|page| text(manual.join(page.file), page.text)));
        Ok(items)
    }
}
