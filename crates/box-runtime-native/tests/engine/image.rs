//! A small image made of this machine's own shell, coreutils and perl, with the libraries they need.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use tar::{Builder, EntryType, Header};

const PROGRAMS: [&str; 27] = [
    "sh", "perl", "cat", "chmod", "chown", "cp", "dd", "echo", "env", "head", "hostname", "id",
    "ln", "ls", "mkdir", "mv", "rm", "rmdir", "sleep", "stat", "tail", "touch", "tr", "true",
    "uname", "wc", "mknod",
];
const FOLDERS: [&str; 14] = [
    "bin", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "run", "tmp", "usr",
    "usr/bin", "var",
];

/// The image: made here, or elsewhere beforehand where this machine lacks what it is made of.
pub(crate) fn bring(to: &Path) {
    match std::env::var_os("BOX_TEST_IMAGE") {
        Some(made) => drop(std::fs::copy(made, to).unwrap()),
        None => pack(to),
    }
}

pub(crate) fn pack(to: &Path) {
    let mut tar = Builder::new(File::create(to).unwrap());
    for folder in FOLDERS {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Directory);
        header.set_mode(if folder == "tmp" { 0o1777 } else { 0o755 });
        header.set_size(0);
        tar.append_data(&mut header, folder, std::io::empty())
            .unwrap();
    }
    let programs: Vec<PathBuf> = PROGRAMS.iter().map(|name| find(name)).collect();
    let libraries: BTreeSet<PathBuf> = programs
        .iter()
        .flat_map(|program| needed_by(program))
        .collect();
    for (program, name) in programs.iter().zip(PROGRAMS) {
        append(&mut tar, program, &Path::new("usr/bin").join(name));
        link(
            &mut tar,
            &format!("bin/{name}"),
            &format!("/usr/bin/{name}"),
        );
    }
    for library in &libraries {
        append(&mut tar, library, library.strip_prefix("/").unwrap());
    }
    let modules = perl_base();
    walk(&modules, &mut |file| {
        append(&mut tar, file, file.strip_prefix("/").unwrap());
    });
    tar.finish().unwrap();
}

fn append(tar: &mut Builder<File>, from: &Path, to: &Path) {
    let content = std::fs::read(from).unwrap();
    let mut header = Header::new_gnu();
    header.set_mode(0o755);
    header.set_size(content.len() as u64);
    tar.append_data(&mut header, to, content.as_slice())
        .unwrap();
}

fn link(tar: &mut Builder<File>, name: &str, target: &str) {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Symlink);
    header.set_size(0);
    tar.append_link(&mut header, name, target).unwrap();
}

fn find(name: &str) -> PathBuf {
    let places = ["/usr/bin", "/bin", "/usr/sbin"];
    let found = places
        .iter()
        .map(|place| Path::new(place).join(name))
        .find(|path| path.exists());
    found.unwrap_or_else(|| panic!("this machine has no `{name}`"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test asks the machine's own loader"
)]
fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn needed_by(program: &Path) -> Vec<PathBuf> {
    let listed = output("ldd", &[program.to_str().unwrap()]);
    let paths = listed
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    paths.map(PathBuf::from).collect()
}

fn perl_base() -> PathBuf {
    let places = output("perl", &["-e", "print join \"\\n\", @INC"]);
    let base = places
        .lines()
        .find(|place| place.ends_with("/perl-base"))
        .unwrap();
    PathBuf::from(base)
}

fn walk(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, visit);
        } else {
            visit(&path);
        }
    }
}
