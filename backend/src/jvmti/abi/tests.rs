//! Against the headers of every installed JDK.

use super::*;
use std::path::PathBuf;

fn headers() -> Vec<(PathBuf, String)> {
    let homes = std::env::var_os("JAVA_HOME").map(PathBuf::from).into_iter();
    let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path());
    let headers: Vec<_> = homes
        .chain(installed)
        .map(|home| home.join("include/jvmti.h"))
        .filter_map(|path| Some((path.clone(), std::fs::read_to_string(path).ok()?)))
        .collect();
    assert!(!headers.is_empty(), "no jvmti.h under JAVA_HOME or /usr/lib/jvm: install openjdk-17-jdk-headless");
    headers
}

/// `NAME = value` in the header.
fn constant(header: &str, name: &str) -> i32 {
    let line = header.lines().find(|line| line.trim_start().starts_with(&format!("{name} ="))).expect(name);
    let value = line.split('=').nth(1).expect("a value").trim().trim_end_matches(',').trim();
    match value.strip_prefix("0x") {
        Some(hex) => i32::from_str_radix(hex, 16).expect(name),
        None => value.parse().expect(name),
    }
}

#[test]
fn slots_are_the_headers() {
    for (path, header) in headers() {
        let table = &header[header.find("jvmtiInterface_1_ {").expect("the table")..];
        for (number, name) in slot::ALL {
            let function = table.find(&format!("(JNICALL *{name})")).unwrap_or_else(|| panic!("{name}"));
            let comment = &table[table[..function].rfind("/*").expect("a comment")..function];
            let found: usize = comment[2..].split(':').next().expect("a number").trim().parse().expect(name);
            assert_eq!(found, *number, "{name} in {}", path.display());
        }
        assert!(table.contains(" 156 : ") && !table.contains(" 157 : "), "{}", path.display());
    }
}

#[test]
fn errors_events_and_status_bits_are_the_headers() {
    for (_, header) in headers() {
        for (code, name) in ERRORS.iter().filter(|(_, name)| header.contains(&format!("JVMTI_ERROR_{name} "))) {
            assert_eq!(constant(&header, &format!("JVMTI_ERROR_{name}")), *code, "{name}");
        }
        for (event, name) in [
            (EventKind::VmInit, "VM_INIT"),
            (EventKind::VmDeath, "VM_DEATH"),
            (EventKind::ThreadStart, "THREAD_START"),
            (EventKind::ThreadEnd, "THREAD_END"),
            (EventKind::ClassFileLoadHook, "CLASS_FILE_LOAD_HOOK"),
            (EventKind::ClassLoad, "CLASS_LOAD"),
            (EventKind::ClassPrepare, "CLASS_PREPARE"),
            (EventKind::CompiledMethodLoad, "COMPILED_METHOD_LOAD"),
            (EventKind::CompiledMethodUnload, "COMPILED_METHOD_UNLOAD"),
            (EventKind::MonitorWait, "MONITOR_WAIT"),
            (EventKind::MonitorWaited, "MONITOR_WAITED"),
            (EventKind::MonitorContendedEnter, "MONITOR_CONTENDED_ENTER"),
            (EventKind::MonitorContendedEntered, "MONITOR_CONTENDED_ENTERED"),
            (EventKind::GarbageCollectionStart, "GARBAGE_COLLECTION_START"),
            (EventKind::GarbageCollectionFinish, "GARBAGE_COLLECTION_FINISH"),
        ] {
            assert_eq!(constant(&header, &format!("JVMTI_EVENT_{name}")), event as i32);
        }
        for (value, name) in [(IN_POINTER, "KIND_IN_PTR"), (A_CHAR, "TYPE_CCHAR")] {
            assert_eq!(constant(&header, &format!("JVMTI_{name}")), value);
        }
        for (bit, name) in [
            (class_status::PREPARED, "PREPARED"),
            (class_status::INITIALIZED, "INITIALIZED"),
            (class_status::ERROR, "ERROR"),
            (class_status::ARRAY, "ARRAY"),
            (class_status::PRIMITIVE, "PRIMITIVE"),
        ] {
            assert_eq!(constant(&header, &format!("JVMTI_CLASS_STATUS_{name}")), bit);
        }
    }
}

#[test]
fn the_kind_of_inline_records_is_the_headers() {
    for (path, _) in headers() {
        let header = std::fs::read_to_string(path.with_file_name("jvmticmlr.h")).expect("it stands beside jvmti.h");
        assert_eq!(constant(&header, "JVMTI_CMLR_INLINE_INFO"), CompileRecord::INLINE_INFO);
    }
}

#[test]
fn capability_bits_are_the_headers() {
    for (_, header) in headers() {
        let bits: Vec<&str> = header.lines().filter_map(|line| line.trim().strip_prefix("unsigned int can_")).collect();
        for (bit, name) in [
            (capability::TAG_OBJECTS, "tag_objects"),
            (capability::BYTECODES, "get_bytecodes"),
            (capability::MONITOR_INFO, "get_monitor_info"),
            (capability::LINE_NUMBERS, "get_line_numbers"),
            (capability::ALL_CLASS_HOOKS, "generate_all_class_hook_events"),
            (capability::COMPILED_METHOD_LOAD, "generate_compiled_method_load_events"),
            (capability::MONITOR_EVENTS, "generate_monitor_events"),
            (capability::NATIVE_METHOD_BIND, "generate_native_method_bind_events"),
            (capability::GARBAGE_COLLECTION_EVENTS, "generate_garbage_collection_events"),
            (capability::CONSTANT_POOL, "get_constant_pool"),
            (capability::RETRANSFORM_CLASSES, "retransform_classes"),
            (capability::RETRANSFORM_ANY_CLASS, "retransform_any_class"),
        ] {
            assert_eq!(bits[bit as usize].split(' ').next(), Some(name));
        }
        // Of older JDKs' bits it is the one behind the last.
        let bit = bits.get(capability::VIRTUAL_THREADS as usize);
        assert!(bit.is_none_or(|bit| bit.starts_with("support_virtual_threads")), "{bit:?}");
    }
}

#[test]
fn callbacks_stand_in_the_headers_order() {
    for (_, header) in headers() {
        let end = header.find("} jvmtiEventCallbacks;").expect("the struct");
        let start = header[..end].rfind("typedef struct {").expect("its beginning");
        let names: Vec<&str> = header[start..end]
            .lines()
            .filter_map(|line| line.trim().strip_prefix("jvmtiEvent")?.split(' ').nth(1))
            .map(|name| name.trim_end_matches(';'))
            .collect();
        let expected =
            ["VMInit", "VMDeath", "ThreadStart", "ThreadEnd", "ClassFileLoadHook", "ClassLoad", "ClassPrepare"];
        assert_eq!(names[..expected.len()], expected);
    }
}
