//! The same policy as a `seccomp` section of the OCI runtime spec, for engines that take one.

use super::program::{Check, Verdict, When};
use super::{CHECKED, always};
use serde_json::{Value, json};

/// The policy as libseccomp can say it: what a check refuses gets EPERM whatever errno we give, and
/// of values refused for one argument only the first can be named.
pub fn profile() -> Value {
    let names: Vec<&str> = always()
        .map(|(name, _)| name.trim_start_matches("SYS_"))
        .collect();
    let mut calls = vec![json!({ "names": names, "action": "SCMP_ACT_ALLOW" })];
    for (name, _, verdict) in CHECKED {
        match verdict {
            Verdict::Allow => calls.push(json!({ "names": [name], "action": "SCMP_ACT_ALLOW" })),
            Verdict::Errno(errno) => calls
                .push(json!({ "names": [name], "action": "SCMP_ACT_ERRNO", "errnoRet": errno })),
            Verdict::Check(check) => {
                for arguments in allowed_by(check) {
                    let action = "SCMP_ACT_ALLOW";
                    calls.push(json!({ "names": [name], "action": action, "args": arguments }));
                }
            }
        }
    }
    let architecture = if cfg!(target_arch = "x86_64") {
        "SCMP_ARCH_X86_64"
    } else {
        "SCMP_ARCH_AARCH64"
    };
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": libc::EPERM,
        "architectures": [architecture],
        "syscalls": calls,
    })
}

/// The alternatives under which a check allows a call, each a list of conditions that all hold.
fn allowed_by(check: &Check) -> Vec<Vec<Value>> {
    let condition = |when: When, holds: bool| match (when, holds) {
        (When::Is(value), true) => {
            json!({ "index": check.argument, "op": "SCMP_CMP_EQ", "value": value })
        }
        (When::Is(value), false) => {
            json!({ "index": check.argument, "op": "SCMP_CMP_NE", "value": value })
        }
        (When::AnyBitOf(bits), _) => {
            let (index, op) = (check.argument, "SCMP_CMP_MASKED_EQ");
            json!({ "index": index, "op": op, "value": bits, "valueTwo": 0 })
        }
    };
    if *check.otherwise == Verdict::Allow {
        let refused = check
            .cases
            .iter()
            .take(1)
            .map(|(when, _)| condition(*when, false));
        return vec![refused.collect()];
    }
    let mut alternatives = Vec::new();
    for (when, verdict) in check.cases {
        let here = condition(*when, true);
        match verdict {
            Verdict::Allow => alternatives.push(vec![here]),
            Verdict::Errno(_) => {}
            Verdict::Check(inner) => {
                let inner = allowed_by(inner).into_iter();
                alternatives.extend(inner.map(|rest| [vec![here.clone()], rest].concat()));
            }
        }
    }
    alternatives
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_checks_become_conditions_that_all_hold() {
        let profile = profile();
        let calls = profile["syscalls"].as_array().unwrap();
        let of = |name: &str| -> Vec<&Value> {
            calls
                .iter()
                .filter(|call| call["names"] == json!([name]))
                .collect()
        };
        assert_eq!(of("clone3")[0]["errnoRet"], 38);
        assert_eq!(of("socket").len(), 4);
        assert_eq!(of("socket")[3]["args"].as_array().unwrap().len(), 2);
        assert_eq!(of("clone")[0]["args"][0]["value"], 0x7E02_0000);
        let names = calls[0]["names"].as_array().unwrap();
        assert!(names.contains(&json!("openat")) && !names.contains(&json!("mount")));
    }
}
