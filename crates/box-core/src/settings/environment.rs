//! Settings that come from the variables of the host: what a deployment in containers sets, and the
//! proxy of the network the machine is in.

use super::upstream::{ProxySetting, direct};
use super::{Origin, Setting, Settings, SettingsError};
use crate::decisions::Fallback;
use crate::paths::Variable;
use box_api::control::NetPreset;
use box_api::egress::upstream::DIRECT_MAX;
use std::fmt;
use zeroize::Zeroizing;

/// Hosts every box may reach and nothing else; empty: any public host (spec C130).
pub const ALLOWED_HOSTS: &str = "EGRESS_ALLOWED_HOSTS";
/// Minutes a permission waits for a person (C92).
const HOLD_MINUTES: &str = "PERMISSION_HOLD_MINUTES";
/// `hold` or `deny`: what then.
const FALLBACK: &str = "PERMISSION_FALLBACK";
/// Who runs the host, for push services (C115).
const PUSH_SUBJECT: &str = "PUSH_SUBJECT";
/// Seconds a turn must be over before that is told (C112).
const SETTLE_SECONDS: &str = "AGENT_SETTLE_SECONDS";
/// In the order curl looks for them.
const PROXY: [&str; 2] = ["https_proxy", "HTTPS_PROXY"];
const NO_PROXY: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// The variables, as they were when the host started.
#[derive(Clone, Default)]
pub struct Environment {
    allowed_hosts: Option<String>,
    hold_minutes: Option<String>,
    fallback: Option<String>,
    push_subject: Option<String>,
    settle_seconds: Option<String>,
    /// The name of the variable and its value, which can hold a password.
    proxy: Option<(&'static str, Zeroizing<String>)>,
    no_proxy: Option<(&'static str, String)>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("allowed_hosts", &self.allowed_hosts)
            .finish_non_exhaustive()
    }
}

impl Environment {
    pub fn here(variable: Variable<'_>) -> Self {
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let first = |names: [&'static str; 2]| {
            let mut set = names
                .into_iter()
                .filter_map(|name| Some((name, text(name)?)));
            set.find(|(_, value)| !value.is_empty())
        };
        Self {
            allowed_hosts: text(ALLOWED_HOSTS),
            hold_minutes: text(HOLD_MINUTES).filter(|value| !value.is_empty()),
            fallback: text(FALLBACK).filter(|value| !value.is_empty()),
            push_subject: text(PUSH_SUBJECT).filter(|value| !value.is_empty()),
            settle_seconds: text(SETTLE_SECONDS).filter(|value| !value.is_empty()),
            proxy: first(PROXY).map(|(name, value)| (name, Zeroizing::new(value))),
            no_proxy: first(NO_PROXY),
        }
    }

    /// Adds what the file does not say. The list of hosts holds whatever the file says.
    ///
    /// # Errors
    /// [`SettingsError::Environment`] names the variable and never says what is in a proxy's.
    pub(super) fn complete(&self, settings: &mut Settings) -> Result<(), SettingsError> {
        let fail = |variable| move |why| SettingsError::Environment { variable, why };
        if let Some(hosts) = &self.allowed_hosts {
            let put = settings.net.put_allowed_hosts(hosts);
            put.map_err(fail(ALLOWED_HOSTS))?;
            let any = settings
                .net
                .allowed_hosts
                .as_ref()
                .is_some_and(Vec::is_empty);
            if any && settings.preset.origin == Origin::Default {
                settings.preset = Setting {
                    value: NetPreset::Open,
                    origin: Origin::Environment(ALLOWED_HOSTS),
                };
            }
        }
        self.complete_hold(settings)?;
        let subject = self
            .push_subject
            .as_deref()
            .map(|text| (PUSH_SUBJECT, text));
        let settle = self.settle_seconds.as_deref();
        let settle = settle.map(|text| (SETTLE_SECONDS, text));
        let put = settings.push.complete(subject, settle);
        put.map_err(|(variable, why)| SettingsError::Environment { variable, why })?;
        let upstream = &mut settings.upstream;
        if let Some((name, url)) = &self.proxy
            && upstream.proxy.origin == Origin::Default
        {
            upstream.proxy = Setting {
                value: Some(ProxySetting::parse(url).map_err(fail(name))?),
                origin: Origin::Environment(name),
            };
        }
        if let Some((name, hosts)) = &self.no_proxy
            && upstream.no_proxy.origin == Origin::Default
        {
            let words = hosts.split([',', ' ']).filter(|word| !word.is_empty());
            // `*` stands for every host, as curl has it: then there is no proxy.
            if words.clone().any(|word| word == "*") {
                upstream.proxy.value = None;
                return Ok(());
            }
            // Other programs read this variable as well, and each takes what it understands.
            let value = words.filter_map(|word| direct(word).ok()).take(DIRECT_MAX);
            upstream.no_proxy = Setting {
                value: value.collect(),
                origin: Origin::Environment(name),
            };
        }
        Ok(())
    }
}

impl Environment {
    fn complete_hold(&self, settings: &mut Settings) -> Result<(), SettingsError> {
        let fail = |variable| move |why| SettingsError::Environment { variable, why };
        if let Some(minutes) = &self.hold_minutes
            && settings.permission_hold.origin == Origin::Default
        {
            let minutes: Option<u32> = minutes.trim().parse().ok().filter(|minutes| *minutes > 0);
            let read = minutes.ok_or_else(|| "it is not a number from 1 on".to_owned());
            settings.permission_hold = Setting {
                value: read.map_err(fail(HOLD_MINUTES))?,
                origin: Origin::Environment(HOLD_MINUTES),
            };
        }
        if let Some(word) = &self.fallback
            && settings.permission_fallback.origin == Origin::Default
        {
            settings.permission_fallback = Setting {
                value: Fallback::parse(word.trim()).map_err(fail(FALLBACK))?,
                origin: Origin::Environment(FALLBACK),
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::path::Path;

    fn with(file: &str, variables: &'static [(&str, &str)]) -> Result<Settings, SettingsError> {
        let variable = |name: &str| -> Option<OsString> {
            let found = variables.iter().find(|(own, _)| *own == name)?;
            Some(found.1.into())
        };
        let mut settings = Settings::parse(Path::new("/etc/box/config.toml"), file)?;
        Environment::here(&variable).complete(&mut settings)?;
        Ok(settings)
    }

    fn hosts(value: &'static [(&str, &str)]) -> Vec<String> {
        let hosts = with("", value).unwrap().net.allowed_hosts.unwrap();
        hosts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn allowed_hosts_are_read_as_the_specification_says() {
        assert_eq!(
            hosts(&[(ALLOWED_HOSTS, "A.Example.com., *.example.org\tb.example")]),
            ["a.example.com", "*.example.org", "b.example"]
        );
        assert_eq!(with("", &[]).unwrap().net.allowed_hosts, None);
        let empty = with("", &[(ALLOWED_HOSTS, " ")]).unwrap();
        assert_eq!(empty.net.allowed_hosts, Some(Vec::new()));
        assert_eq!(empty.preset.value, NetPreset::Open);
        let error = with("", &[(ALLOWED_HOSTS, "*")]).unwrap_err().to_string();
        assert!(
            error.contains("`EGRESS_ALLOWED_HOSTS`") && error.contains("`*`"),
            "{error}"
        );
    }

    #[test]
    fn file_says_more_about_the_proxy_than_variables() {
        let variables = &[
            ("HTTPS_PROXY", "http://me:pw@env.corp:1"),
            ("NO_PROXY", "a.corp,10.0.0.0/8"),
        ];
        let of_env = with("", variables).unwrap().upstream;
        assert_eq!(of_env.proxy.value.unwrap().shown(), "http://***@env.corp:1");
        assert_eq!(of_env.no_proxy.value.len(), 2);
        let of_file = with("[egress]\nproxy = \"http://file.corp:2\"", variables).unwrap();
        assert_eq!(
            of_file.upstream.proxy.value.unwrap().shown(),
            "http://file.corp:2"
        );
        let none = with("[egress]\nproxy = \"\"", variables).unwrap();
        assert_eq!(none.upstream.proxy.value, None);
        let bad = with("", &[("https_proxy", "https://me:s3cret@x")]).unwrap_err();
        assert!(!bad.to_string().contains("s3cret"), "{bad}");
    }

    #[test]
    fn the_file_says_more_about_the_hold_time_than_variables() {
        let variables = &[(HOLD_MINUTES, "5"), (FALLBACK, "deny")];
        let of_env = with("", variables).unwrap();
        assert_eq!(of_env.permission_hold.value, 5);
        assert_eq!(of_env.permission_fallback.value, Fallback::Deny);
        let file = "[decisions]\npermission_hold = 7\npermission_fallback = \"hold\"";
        let of_file = with(file, variables).unwrap();
        assert_eq!(of_file.permission_hold.value, 7);
        assert_eq!(of_file.permission_fallback.value, Fallback::Hold);
        let none = with("", &[]).unwrap();
        assert_eq!(none.permission_hold.value, 120);
        for bad in [
            &[(HOLD_MINUTES, "0")],
            &[(HOLD_MINUTES, "x")],
            &[(FALLBACK, "allow")],
        ] {
            assert!(with("", bad).is_err(), "{bad:?}");
        }
    }
}
