//! The lambdas and method references of a class: what the objects run that its code makes of them.

use crate::Error;
use crate::call_sites::{CallKind, CallSite};
use crate::class_file::ClassFile;
use crate::constant_pool::INVOKE_DYNAMIC;
use crate::likelihood::Likelihood;

/// The class whose methods make such objects, `metafactory` and `altMetafactory`. Their second argument is what the objects run.
const METAFACTORY: &str = "java/lang/invoke/LambdaMetafactory";

/// A lambda or a method reference, wherever in the class it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lambda {
    /// Internal name of the functional interface that its object implements.
    pub interface: String,
    /// The name of that interface's method.
    pub name: String,
    /// What the method runs: the lambda's body, or the method referred to.
    pub body: CallSite,
}

/// All lambdas and method references of a class.
pub fn lambdas(class: &ClassFile<'_>) -> Result<Vec<Lambda>, Error> {
    let mut lambdas = Vec::new();
    for index in 1..class.pool.len() {
        let index = index as u16;
        // The second half of a long constant is no entry.
        let Ok((INVOKE_DYNAMIC, _)) = class.pool.entry(index, 0) else { continue };
        lambdas.extend(lambda(class, index)?);
    }
    Ok(lambdas)
}

/// What a dynamic call site makes, if it is a lambda.
fn lambda(class: &ClassFile<'_>, call_site: u16) -> Result<Option<Lambda>, Error> {
    let pool = &class.pool;
    let (bootstrap, name_and_type, at) = pool.dynamic(call_site, 0)?;
    let (name, descriptor) = pool.name_and_type(name_and_type, at)?;
    let (handle, mut arguments) = class.bootstrap_method(bootstrap, at)?;
    let (_, factory) = pool.method_handle(handle, at)?;
    let made = descriptor.rsplit_once(")L").and_then(|(_, class)| class.strip_suffix(';'));
    let Some(interface) = made.filter(|_| pool.member(factory, at).is_ok_and(|it| it.owner == METAFACTORY)) else {
        return Ok(None);
    };
    arguments.u2("the interface method's type")?;
    let at = arguments.offset();
    let (kind, member) = pool.method_handle(arguments.u2("what a lambda runs")?, at)?;
    let Some(kind) = CallKind::of_handle(kind, at)? else { return Ok(None) };
    let member = pool.member(member, at)?;
    let body = CallSite {
        kind,
        owner: member.owner.into(),
        name: member.name.into(),
        descriptor: member.descriptor.into(),
        interface: member.interface,
        offset: 0,
        likelihood: Likelihood::Possible,
    };
    Ok(Some(Lambda { interface: interface.to_owned(), name: name.into_owned(), body }))
}
