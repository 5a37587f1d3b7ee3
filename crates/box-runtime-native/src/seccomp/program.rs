//! Compiles verdicts into a classic BPF program that finds a call's verdict in a binary tree.
//!
//! A list of comparisons, one a system call, takes ten times as many instructions and ten times as
//! long to load (`reference/runtime.md` §0.5).

use libc::{c_int, sock_filter};

/// `AUDIT_ARCH_*` of this build (linux/audit.h); calls of any other kind end the process.
#[cfg(target_arch = "x86_64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_00B7;

// Offsets in `struct seccomp_data` (seccomp(2)); the low half of an argument comes first on
// little-endian machines, which are the only ones we build for.
pub(super) const OFFSET_NUMBER: u32 = 0;
pub(super) const OFFSET_ARCHITECTURE: u32 = 4;
pub(super) const OFFSET_ARGUMENTS: u32 = 16;

// Instructions and return values (linux/bpf_common.h, linux/seccomp.h).
pub(super) const LOAD: u16 = 0x20;
pub(super) const JUMP: u16 = 0x05;
pub(super) const JUMP_EQUAL: u16 = 0x15;
pub(super) const JUMP_AT_LEAST: u16 = 0x35;
pub(super) const JUMP_ANY_BIT: u16 = 0x45;
pub(super) const RETURN: u16 = 0x06;
pub(super) const ALLOW: u32 = 0x7FFF_0000;
pub(super) const ERRNO: u32 = 0x0005_0000;
pub(super) const KILL_PROCESS: u32 = 0x8000_0000;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Allow,
    Errno(c_int),
    Check(&'static Check),
}

/// A verdict that depends on the low 32 bits of an argument; the first case that fits decides.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) argument: u32,
    pub(super) cases: &'static [(When, Verdict)],
    pub(super) otherwise: &'static Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Is(u32),
    AnyBitOf(u32),
}

/// The verdict of one system call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) number: u32,
    pub(super) verdict: Verdict,
}

/// Numbers from `first` to the next range's `first` that share a verdict.
struct Range {
    first: u32,
    verdict: Verdict,
}

/// The program for `rules`, which are in order. Numbers without a rule get EPERM; those above
/// `known_max` get ENOSYS, as from an older kernel, so that a newer C library falls back.
pub(super) fn compile(rules: &[Rule], known_max: u32) -> Vec<sock_filter> {
    with_header(&ranges(rules, known_max))
}

/// The program for `rules`, which are in order, where every other number gets `otherwise`.
pub(super) fn compile_over(rules: &[Rule], otherwise: Verdict) -> Vec<sock_filter> {
    let mut ranges = vec![Range {
        first: 0,
        verdict: otherwise,
    }];
    for rule in rules {
        for (first, verdict) in [(rule.number, rule.verdict), (rule.number + 1, otherwise)] {
            match ranges.last_mut() {
                Some(last) if last.first == first => last.verdict = verdict,
                Some(_) | None => ranges.push(Range { first, verdict }),
            }
        }
    }
    with_header(&ranges)
}

fn with_header(ranges: &[Range]) -> Vec<sock_filter> {
    let mut program = vec![
        load(OFFSET_ARCHITECTURE),
        branch(JUMP_EQUAL, ARCHITECTURE, 1, 0),
        give(KILL_PROCESS),
        load(OFFSET_NUMBER),
    ];
    program.extend(tree(ranges));
    program
}

fn ranges(rules: &[Rule], known_max: u32) -> Vec<Range> {
    let mut ranges = vec![Range {
        first: 0,
        verdict: Verdict::Errno(libc::EPERM),
    }];
    let mut push = |first: u32, verdict: Verdict| match ranges.last_mut() {
        Some(last) if last.verdict == verdict => {}
        Some(last) if last.first == first => last.verdict = verdict,
        Some(_) | None => ranges.push(Range { first, verdict }),
    };
    let mut next = 0;
    for rule in rules {
        if rule.number > next {
            push(next, Verdict::Errno(libc::EPERM));
        }
        push(rule.number, rule.verdict);
        next = rule.number + 1;
    }
    if next <= known_max {
        push(next, Verdict::Errno(libc::EPERM));
    }
    push(
        known_max.max(next.saturating_sub(1)) + 1,
        Verdict::Errno(libc::ENOSYS),
    );
    ranges
}

/// Code that finds the range of the loaded number and acts on its verdict.
fn tree(ranges: &[Range]) -> Vec<sock_filter> {
    match ranges {
        [] => vec![give(KILL_PROCESS)],
        [only] => act(only.verdict),
        _ => {
            let (lower, upper) = ranges.split_at(ranges.len() / 2);
            let mut code = skip_if(JUMP_AT_LEAST, upper[0].first, tree(lower));
            code.extend(tree(upper));
            code
        }
    }
}

fn act(verdict: Verdict) -> Vec<sock_filter> {
    match verdict {
        Verdict::Allow => vec![give(ALLOW)],
        Verdict::Errno(number) => vec![give(ERRNO | number.cast_unsigned())],
        Verdict::Check(check) => {
            let mut code = vec![load(OFFSET_ARGUMENTS + 8 * check.argument)];
            for (when, then) in check.cases {
                let (test, value) = match *when {
                    When::Is(value) => (JUMP_EQUAL, value),
                    When::AnyBitOf(bits) => (JUMP_ANY_BIT, bits),
                };
                code.extend(run_if(test, value, act(*then)));
            }
            code.extend(act(*check.otherwise));
            code
        }
    }
}

/// `body`, jumped over when the test holds. A conditional jump reaches 255 instructions; farther
/// ones go by way of a plain jump.
fn skip_if(test: u16, value: u32, body: Vec<sock_filter>) -> Vec<sock_filter> {
    let mut code = match u8::try_from(body.len()) {
        Ok(length) => vec![branch(test, value, length, 0)],
        Err(_) => vec![branch(test, value, 0, 1), jump(body.len())],
    };
    code.extend(body);
    code
}

/// `body`, reached only when the test holds.
fn run_if(test: u16, value: u32, body: Vec<sock_filter>) -> Vec<sock_filter> {
    let mut code = match u8::try_from(body.len()) {
        Ok(length) => vec![branch(test, value, 0, length)],
        Err(_) => vec![branch(test, value, 1, 0), jump(body.len())],
    };
    code.extend(body);
    code
}

fn load(offset: u32) -> sock_filter {
    sock_filter {
        code: LOAD,
        jt: 0,
        jf: 0,
        k: offset,
    }
}

fn give(value: u32) -> sock_filter {
    sock_filter {
        code: RETURN,
        jt: 0,
        jf: 0,
        k: value,
    }
}

fn branch(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// A forward jump. The kernel takes programs of 4,096 instructions, so the length always fits.
fn jump(over: usize) -> sock_filter {
    sock_filter {
        code: JUMP,
        jt: 0,
        jf: 0,
        k: u32::try_from(over).unwrap_or(u32::MAX),
    }
}
