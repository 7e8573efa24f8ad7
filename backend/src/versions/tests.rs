use super::*;

/// `Methodref` 8: `A.get:()I` and behind it `A.got:()I`, after so many other constants.
fn constants(others: u16) -> (u16, Vec<u8>) {
    methods_of("A", others)
}

/// The same of this class.
fn methods_of(class: &str, others: u16) -> (u16, Vec<u8>) {
    let mut pool = Vec::new();
    (0..others).for_each(|_| pool.extend([3, 0, 0, 0, 9]));
    let at = |index: u16| (others + index).to_be_bytes();
    for text in [class, "get", "()I", "got"] {
        pool.extend([1, 0, text.len() as u8]);
        pool.extend(text.as_bytes());
    }
    pool.push(7);
    pool.extend(at(1));
    for name in [2, 4] {
        pool.push(12);
        pool.extend([at(name), at(3)].concat());
    }
    for method in [6, 7] {
        pool.push(10);
        pool.extend([at(5), at(method)].concat());
    }
    (others + 10, pool)
}

/// Instructions, without anything behind them.
fn code<'a>(instructions: &'a [u8], pool: &'a Pool<'a>) -> Code<'a> {
    static NO_LINES: Lines = Lines::new();
    Code { instructions, constants: Constants { pool, bootstraps: None }, lines: &NO_LINES, handlers: None }
}

#[test]
fn call_sites_are_the_same_if_they_are_linked_in_the_same_way() {
    // Call site 1 of `7`, linked by the first or by the second way: with one handle, and this text or that.
    let mut bytes = Vec::new();
    for text in ["run", "()V", "hello", "goodbye"] {
        bytes.extend([&[1, 0, text.len() as u8], text.as_bytes()].concat());
    }
    bytes.extend([12, 0, 1, 0, 2, 8, 0, 3, 8, 0, 4, 15, 6, 0, 5, 18, 0, 0, 0, 5, 18, 0, 1, 0, 5, 17, 0, 2, 0, 5]);
    let (pool, rest) = Pool::parse(12, &bytes).unwrap();
    assert!(rest.is_empty());
    let ways = [vec![8, 6], vec![8, 7], vec![8, 11]];
    let known = Constants { pool: &pool, bootstraps: Some(&ways) };
    let turned = [vec![8, 7], vec![8, 6]];
    let turned = Constants { pool: &pool, bootstraps: Some(&turned) };
    let unknown = Constants { pool: &pool, bootstraps: None };
    assert!(is_same_constant((known, 9), (known, 9)) && is_same_constant((known, 9), (turned, 10)));
    assert!(!is_same_constant((known, 9), (known, 10)) && !is_same_constant((known, 9), (turned, 9)));
    assert!(is_same_constant((known, 9), (unknown, 9)), "nobody knows better");
    assert!(!is_same_constant((known, 11), (known, 11)), "it is computed from itself");
}

#[test]
fn exceptions_are_handled_in_the_same_way_by_handlers_of_the_same_classes_at_the_same_places() {
    let bytes = [1, 0, 1, b'A', 7, 0, 1, 1, 0, 1, b'B', 7, 0, 3];
    let (pool, _) = Pool::parse(5, &bytes).unwrap();
    let (one, wider) = ([0_u8; 8], [0_u8; 9]);
    let check = |handlers: [u16; 4], its: [u16; 4], moved: fn(u16) -> Option<u16>| {
        let [handlers, its] = [vec![handlers], vec![its]];
        let [a, b] = [(&one[..], &handlers), (&wider[..], &its)]
            .map(|(bytes, handlers)| Code { handlers: Some(handlers), ..code(bytes, &pool) });
        is_handled_the_same(a, b, moved)
    };
    assert!(check([0, 4, 4, 2], [0, 4, 4, 2], Some) && check([0, 4, 4, 0], [0, 4, 4, 0], Some));
    assert!(!check([0, 4, 4, 2], [0, 4, 4, 4], Some), "another class");
    assert!(!check([0, 4, 4, 2], [0, 4, 4, 0], Some), "any class");
    assert!(!check([0, 4, 4, 2], [0, 4, 5, 2], Some), "another handler");
    assert!(check([0, 4, 4, 2], [0, 5, 5, 2], |place| Some(if place > 0 { place + 1 } else { 0 })), "moved");
    assert!(!check([0, 4, 4, 2], [0, 4, 4, 2], |_| None), "no instruction begins there");
}

#[test]
fn calls_are_the_same_whatever_their_constants_numbers_are() {
    let (near, far) = (constants(0), constants(300));
    let (near, far) = (Pool::parse(near.0, &near.1).unwrap().0, Pool::parse(far.0, &far.1).unwrap().0);
    let call = |index: u16| [&[0x2a, 0xb6][..], &index.to_be_bytes(), &[0xac]].concat();
    let is_same = |a: &[u8], b: &[u8]| are_same_instructions(code(a, &near), code(b, &far));
    assert!(is_same(&call(8), &call(308)));
    assert!(!is_same(&call(8), &call(309)), "another method");
    assert!(!is_same(&call(8), &call(8)), "no method at all");
    assert!(!is_same(&call(8), &call(308)[..4]), "cut off");
}

#[test]
fn what_the_recorder_calls_is_not_missed_in_the_class_file() {
    let pools = ["A", "jdk/jfr/events/FileWriteEvent", "jdk/jfr/Event"].map(|class| methods_of(class, 0));
    let [own, recorders, programs] = pools.each_ref().map(|pool| Pool::parse(pool.0, &pool.1).unwrap().0);
    // Calls 8 and returns; returns.
    let (calls, returns) = ([0xb8, 0, 8, 0xac], [0x03, 0xac]);
    assert!(is_recorders(code(&calls, &recorders), code(&returns, &own)));
    assert!(
        !is_recorders(code(&calls, &recorders), code(&calls, &recorders)),
        "up to JDK 19 that is in the class file"
    );
    assert!(!is_recorders(code(&calls, &programs), code(&returns, &own)), "a program's own event");
    assert!(!is_recorders(code(&calls, &own), code(&returns, &own)));
}

/// A switch behind `ldc` or `ldc_w`, whose cases jump to what is behind it and back to the beginning; the text is the constant before it.
fn with_text(others: u16, is_wide: bool, key: u8, text: &str) -> (Vec<u8>, (u16, Vec<u8>), Lines) {
    let mut pool = Vec::new();
    (0..others).for_each(|_| pool.extend([3, 0, 0, 0, 9]));
    pool.extend([&[1, 0, text.len() as u8], text.as_bytes(), &[8], &(others + 1).to_be_bytes()].concat());
    let index = (others + 2).to_be_bytes();
    let mut code = if is_wide { vec![0x13, index[0], index[1]] } else { vec![0x12, index[1]] };
    let switch = code.len();
    code.push(0xab);
    code.resize((code.len() + 3) & !3, 0);
    let end = (code.len() + 16 - switch) as u8;
    let back = (-(switch as i32)).to_be_bytes();
    code.extend([&[0, 0, 0, end, 0, 0, 0, 1, 0, 0, 0, key][..], &back, &[0xa7, 0, 3, 0xb1]].concat());
    let lines = vec![(0, 7), (switch as u16, 8), (code.len() as u16 - 1, 9)];
    (code, (others + 3, pool), lines)
}

#[test]
fn code_is_the_same_though_a_constant_is_so_far_that_its_index_is_wide() {
    let (code, pool, lines) = with_text(0, false, 5, "text");
    let pool = Pool::parse(pool.0, &pool.1).unwrap().0;
    let compared = |others, key, text: &str, change: fn(&mut Vec<u8>, &mut Lines)| {
        let (mut runs, its_pool, mut its_lines) = with_text(others, true, key, text);
        change(&mut runs, &mut its_lines);
        let its_pool = Pool::parse(its_pool.0, &its_pool.1).unwrap().0;
        let of_file = Code { lines: &lines, ..self::code(&code, &pool) };
        is_widened(of_file, Code { lines: &its_lines, ..self::code(&runs, &its_pool) })
    };
    assert!(compared(300, 5, "text", |_, _| {}));
    assert!(!compared(300, 6, "text", |_, _| {}), "another key");
    assert!(!compared(300, 5, "texts", |_, _| {}), "another text");
    assert!(!compared(300, 5, "text", |code, _| *code.last_mut().unwrap() = 0xac), "another instruction");
    assert!(!compared(300, 5, "text", |code, _| code.extend([0xb1])), "one more");
    let jumps_on: fn(&mut Vec<u8>, &mut Lines) = |code, _| {
        let offset = code.len() - 5;
        code[offset] = 0;
        code[offset - 1] = 0;
        code[offset - 2] = 0;
        code[offset - 3] = 0;
    };
    assert!(!compared(300, 5, "text", jumps_on), "it jumps elsewhere");
    assert!(!compared(300, 5, "text", |_, lines| lines[1].1 = 10), "another line");
    assert!(!compared(300, 5, "text", |_, lines| lines[1].0 = 0), "a line elsewhere");
}

#[test]
fn a_call_runs_code_that_has_an_instruction_there_that_can_have_called_what_it_has_called() {
    // Behind a push and a call of another method, `A.get`; then `A.got`.
    let code = [&[0x11, 0, 7, 0xb8, 0, 8, 0x2a, 0xb6, 0, 9][..], &[0xac]].concat();
    let current = Current { code, pool: constants(0) };
    assert!(current.may_be_at(3, Some("get")) && current.may_be_at(7, Some("got")));
    assert!(current.may_be_at(3, Some("prefix_get")), "a native method by the name that an agent gave it");
    assert!(current.may_be_at(3, Some("<clinit>")) && current.may_be_at(0, Some("loadClass")));
    assert!(current.may_be_at(6, None));
    for (place, callee) in
        [(3, Some("got")), (7, Some("get")), (0, Some("get")), (4, Some("get")), (5, None), (11, None)]
    {
        assert!(!current.may_be_at(place, callee), "{place} {callee:?}");
    }
}

#[test]
fn every_instruction_is_as_long_as_it_is() {
    let check = |code: &[u8], at, length| assert_eq!(operands(code, at), Some(Operands::Plain(length)), "{code:x?}");
    // From 5 to 6, behind two bytes that align it.
    let mut table = vec![0x03, 0xaa, 0, 0];
    table.extend([[0_u8, 0, 0, 20], [0, 0, 0, 5], [0, 0, 0, 6], [0, 0, 0, 1], [0, 0, 0, 2]].concat());
    check(&table, 1, 2 + 5 * 4);
    check(&[0xab, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1], 0, 3 + 4 * 4);
    check(&[0xc4, 0x84, 0, 1, 0, 1], 0, 5);
    check(&[0xc4, 0x15, 0, 1], 0, 3);
    assert_eq!(operands(&[0xba], 0), Some(Operands::Constant(2, 2)));
    assert_eq!(operands(&[0xca], 0), None);
}

#[test]
fn a_class_file_runs_as_itself() {
    for class in headwater_runtime_java::CLASSES {
        let file = ClassFile::parse(class.bytes).unwrap();
        for method in &file.methods {
            let Some(code) = method.attribute("Code") else { continue };
            let (instructions, lines, handlers) = parts(&file, code).unwrap();
            let constants = Constants { pool: &file.pool, bootstraps: Some(&file.bootstraps) };
            let code = Code { instructions, constants, lines: &lines, handlers: Some(&handlers) };
            assert!(is_same_code(code, code) && is_widened(code, code), "{}", class.name);
            assert!(lines.iter().all(|(start, _)| usize::from(*start) < instructions.len()));
        }
    }
}
