//! What a machine may be set up to forbid its users, and how that is changed.

use std::path::Path;

/// A setting that is in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forbidden {
    /// What is so, such as `` `user.max_user_namespaces` is 0 ``.
    pub why: String,
    /// What root types to change it.
    pub fix: String,
}

/// A setting below `/proc/sys`, what it must not be, and what it is set to instead.
struct Setting {
    name: &'static str,
    bad: &'static str,
    good: &'static str,
}

/// `user_namespaces(7)`; the second is Debian's before Linux 5.10, the third Ubuntu's since 23.10.
const SETTINGS: [Setting; 4] = [
    Setting {
        name: "user.max_user_namespaces",
        bad: "0",
        good: "10000",
    },
    Setting {
        name: "kernel.unprivileged_userns_clone",
        bad: "0",
        good: "1",
    },
    Setting {
        name: "kernel.apparmor_restrict_unprivileged_userns",
        bad: "1",
        good: "0",
    },
    Setting {
        name: "user.max_mnt_namespaces",
        bad: "0",
        good: "10000",
    },
];

/// The first setting that keeps an ordinary user from making namespaces.
pub fn forbidden() -> Option<Forbidden> {
    forbidden_below(Path::new("/proc/sys"))
}

fn forbidden_below(settings: &Path) -> Option<Forbidden> {
    SETTINGS.iter().find_map(|setting| {
        let Setting { name, bad, good } = setting;
        let text = std::fs::read_to_string(settings.join(name.replace('.', "/"))).ok()?;
        (text.trim() == *bad).then(|| Forbidden {
            why: format!("`{name}` is {bad}"),
            fix: format!("`sudo sysctl {name}={good}`"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_in_the_way_is_named_with_its_fix() {
        let settings = tempfile::tempdir().unwrap();
        for folder in ["user", "kernel"] {
            std::fs::create_dir(settings.path().join(folder)).unwrap();
        }
        let write = |name: &str, text: &str| {
            std::fs::write(settings.path().join(name), text).unwrap();
        };
        write("user/max_user_namespaces", "96365\n");
        assert_eq!(forbidden_below(settings.path()), None);
        write("kernel/apparmor_restrict_unprivileged_userns", "1\n");
        let found = forbidden_below(settings.path()).unwrap();
        assert!(found.why.contains("apparmor"), "{found:?}");
        assert!(found.fix.ends_with("userns=0`"), "{found:?}");
        write("user/max_user_namespaces", "0\n");
        assert!(
            forbidden_below(settings.path())
                .unwrap()
                .why
                .contains("max_user")
        );
    }
}
