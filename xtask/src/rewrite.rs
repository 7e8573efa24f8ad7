//! `cargo xtask rewrite IN OUT`: every class of a jar, a class file or a JDK's image, instrumented.

use std::path::Path;

use crate::class_tree;
use crate::jar::{Jar, Packing};
use crate::machine::root;
use crate::rewriting::{ClassBytes, Figures, Natives, Pass, rewrite};

/// What IN begins with when it is a JDK's image.
const IMAGE: &str = "jrt:";

pub(crate) fn run(input: &str, output: &Path, pass: Pass, report: bool) -> Result<(), String> {
    let figures = if let Some(home) = input.strip_prefix(IMAGE) {
        rewrite_image(Path::new(home), output, pass)?
    } else if input.ends_with(".class") {
        rewrite_class(Path::new(input), output, pass)?
    } else if input.ends_with(".jar") {
        rewrite_jar(Path::new(input), output, pass)?
    } else {
        return Err(format!("{input}: give x.jar, x.class or {IMAGE}<home of a JDK>"));
    };
    print(&figures, pass, report);
    match &figures.different[..] {
        [] => Ok(()),
        different => Err(format!("came out different: {}", different.join(", "))),
    }
}

fn print(figures: &Figures, pass: Pass, report: bool) {
    if report {
        for refused in &figures.refused {
            println!("{}: {}", refused.method, refused.reason);
        }
    }
    for (class, error) in &figures.unreadable {
        println!("{class}: copied unchanged, not readable: {error}");
    }
    println!("classes     {}", figures.classes);
    println!("unreadable  {}", figures.unreadable.len());
    match pass {
        Pass::Instrument | Pass::Count => {
            println!("methods     {}, instrumented {}", figures.methods, figures.methods - figures.refused.len());
            println!("refused     {}", figures.refusals());
        }
        Pass::Identity => {
            println!("methods     {}", figures.methods);
            println!("different   {}", figures.different.len());
        }
    }
    println!("speed       {:.1} MB/s (one thread, rewriting only)", figures.megabytes_per_second());
}

fn rewrite_class(input: &Path, output: &Path, pass: Pass) -> Result<Figures, String> {
    let bytes =
        std::fs::read(input).map_err(|error| format!("{}: {error}; give an existing class file", input.display()))?;
    let class = ClassBytes { name: input.to_string_lossy().into_owned(), bytes };
    let (mut rewritten, figures) = rewrite(std::slice::from_ref(&class), pass, &Natives::default());
    let bytes = rewritten.pop().flatten().unwrap_or(class.bytes);
    std::fs::write(output, bytes).map_err(|error| format!("{}: {error}", output.display()))?;
    Ok(figures)
}

fn rewrite_jar(input: &Path, output: &Path, pass: Pass) -> Result<Figures, String> {
    let mut jar = Jar::open(input)?;
    let classes = jar.classes()?;
    let (rewritten, figures) = rewrite(&classes, pass, &Natives::default());
    for name in jar.write(output, &changed(classes, rewritten), Packing::Same)? {
        eprintln!("{name}: left out, the classes it signs have changed");
    }
    Ok(figures)
}

fn rewrite_image(home: &Path, output: &Path, pass: Pass) -> Result<Figures, String> {
    let extracted = root().join("target/rewrite-image");
    let mut figures = Figures::default();
    for module in class_tree::extract_image(home, &extracted)? {
        let classes = class_tree::read(&module)?;
        let (rewritten, of_module) = rewrite(&classes, pass, &Natives::default());
        figures.add(of_module);
        let all = classes.into_iter().zip(rewritten);
        let all: Vec<ClassBytes> =
            all.map(|(class, new)| ClassBytes { bytes: new.unwrap_or(class.bytes), ..class }).collect();
        class_tree::write(&output.join(module.file_name().unwrap_or_default()), &all)?;
    }
    std::fs::remove_dir_all(&extracted).map_err(|error| format!("{}: {error}", extracted.display()))?;
    Ok(figures)
}

/// Those classes that the pass has changed.
pub(crate) fn changed(classes: Vec<ClassBytes>, rewritten: Vec<Option<Vec<u8>>>) -> Vec<ClassBytes> {
    let pairs = classes.into_iter().zip(rewritten);
    pairs.filter_map(|(class, new)| new.map(|bytes| ClassBytes { bytes, ..class })).collect()
}
