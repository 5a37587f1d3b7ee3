//! The list of what was installed: lines of absolute paths, folders with a slash at the end.

use std::io;
use std::path::{Path, PathBuf};

/// Files, and the folders that were made for them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct List {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl List {
    /// What an earlier install wrote; empty when there was none.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub(crate) fn read(file: &Path) -> io::Result<Self> {
        match std::fs::read_to_string(file) {
            Ok(text) => Ok(Self::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    fn parse(text: &str) -> Self {
        let mut list = Self::default();
        for line in text.lines().filter(|line| line.starts_with('/')) {
            let to = if line.ends_with('/') {
                &mut list.folders
            } else {
                &mut list.files
            };
            to.push(PathBuf::from(line.trim_end_matches('/')));
        }
        list
    }

    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The deepest first, as they are removed.
    pub(crate) fn folders(&self) -> Vec<&Path> {
        let mut folders: Vec<&Path> = self.folders.iter().map(PathBuf::as_path).collect();
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        folders
    }

    /// Files are named anew; folders an earlier install made are still ours.
    pub(crate) fn begin(&mut self) {
        self.files.clear();
    }

    pub(crate) fn add_file(&mut self, path: &Path) {
        self.files.push(path.to_owned());
    }

    pub(crate) fn add_folder(&mut self, path: &Path) {
        self.folders.push(path.to_owned());
    }

    pub(crate) fn text(&self, build: &str) -> String {
        let files = self
            .files
            .iter()
            .map(|path| format!("{}\n", path.display()));
        let folders = self
            .folders
            .iter()
            .map(|path| format!("{}/\n", path.display()));
        let lines: String = files.chain(folders).collect();
        format!("# box {build}: what `box install` made, for `box uninstall`\n{lines}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let mut list = List::default();
        list.add_file(Path::new("/a/b/c"));
        list.add_folder(Path::new("/a"));
        list.add_folder(Path::new("/a/b"));
        assert_eq!(List::parse(&list.text("0.1.0")), list);
        assert_eq!(list.folders(), [Path::new("/a/b"), Path::new("/a")]);
        assert_eq!(List::parse("# nothing\nrelative\n"), List::default());
    }
}
