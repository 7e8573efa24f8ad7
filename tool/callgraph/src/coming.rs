//! Classes that come: what is reachable already is applied to them.

use std::sync::Arc;

use headwater_terms::Scheme;

use super::CallGraph;
use super::likely::Ground;
use super::mirror::{CLINIT, ClassKey};
use super::policy::{LEAST_SHARE, LOADED_LATER};
use super::source::{Called, Named, Spare, target};

impl CallGraph {
    /// Applies what is reachable already to a class that has been linked: all its supertypes are known.
    pub(super) fn apply_to(&mut self, class: ClassKey) {
        let CallGraph { known, methods, likely, reachable, escape, plan, .. } = self;
        reachable.select_roots_by(known, methods, likely, class);
        if known.roots_only {
            return;
        }
        plan.take_up(known, methods);
        plan.reflection.probe_invokers(known, &mut plan.to_hotswap);
        escape.mentions.look_for_blind_spots(known, class);
        plan.natives.look_again(known, class);
        plan.probe_passages(known);
        let mirror = known.mirrors.get(class);
        let (name, is_abstract) = (&mirror.name, mirror.is_abstract_class());
        if known.options.scheme == Scheme::Total {
            reachable.select_all_in(known, methods, class);
        }
        let mut callees = Vec::new();
        let ground = &mut Ground { known, methods, likely };
        let named = Named { name, loader: mirror.loader };
        for called in reachable.direct_calls_to_come(name) {
            reachable.reach_direct(ground, named, called, Spare::Nothing, &mut callees);
            if ground.known.may_inherit_from_outside(class, target(called)) {
                escape.no_longer_stays(ground.methods, reachable, &mut plan.guards, called.0);
            }
        }
        for called in reachable.virtual_calls_to_come(name) {
            reachable.reach_virtual(ground, named, called, Spare::Nothing, &mut callees);
            if ground.known.may_inherit_from_outside(class, target(called)) {
                escape.no_longer_stays(ground.methods, reachable, &mut plan.guards, called.0);
            }
        }
        if let Some(from) = reachable.initializer_of(name) {
            reachable.select_initializers(ground.known, ground.methods, class, from, &mut callees);
        }
        callees.into_iter().for_each(|callee| ground.methods.raise(callee.method, callee.probability * LOADED_LATER));
        for supertype in ground.known.mirrors.supertypes(class) {
            for called in reachable.virtual_calls_on(supertype) {
                let mut selected = Vec::new();
                reachable.select_for(ground.known, ground.methods, class, called, &mut selected);
                selected.into_iter().for_each(|method| ground.methods.raise(method, LEAST_SHARE));
                if !is_abstract
                    && ground.known.inherits_from_outside(class, called.0, called.1.caller)
                    && reachable.begin_to_leave(ground.known, supertype, target(called))
                {
                    escape.no_longer_stays(ground.methods, reachable, &mut plan.guards, called.0);
                }
            }
            escape.escape_again(ground, reachable, class, supertype);
        }
        escape.opaque.expose_if_open(ground, reachable, &mut escape.mentions, class);
    }

    /// Applies what is reachable already to a class whose loading has begun. Its supertypes are perhaps not loaded yet: then
    /// the methods that override something by their signature are taken for reachable. That may be too many; it
    /// misses none, and saves a redefinition. What is inherited is left to [`CallGraph::apply_to`].
    pub(super) fn apply_while_loading(&mut self, class: ClassKey, name: &str) {
        let CallGraph { known, methods, likely, reachable, escape, .. } = self;
        reachable.select_roots_while_loading(known, methods, likely, class, name);
        if known.roots_only {
            return;
        }
        let name: Arc<str> = name.into();
        reachable.reach_what_it_inherits(known, class, &name);
        let mut named = reachable.direct_calls_to_come(&name);
        named.extend(reachable.virtual_calls_to_come(&name));
        let is_among = |called: &[Called], signature| called.iter().find(|it| it.0 == signature).map(|it| it.1);
        let wanted = known.declared(class, |signature| is_among(&named, signature));
        reachable.select_declared(known, methods, class, wanted);
        if let Some(from) = reachable.initializer_of(&name) {
            let initializer = known.mirrors.intern_signature(CLINIT.0, CLINIT.1);
            let wanted = known.declared(class, |signature| (signature == initializer).then_some(from));
            reachable.select_declared(known, methods, class, wanted);
            // Loaded next, if they are not loaded yet, and initialised with it.
            for supertype in &known.mirrors.get(class).super_names {
                reachable.initializers.insert(supertype.clone(), from);
            }
        }
        let Some(supertypes) = known.known_supertypes(class) else {
            let wanted = known.declared(class, |signature| {
                let method = known.mirrors.method(class, signature)?;
                let called = reachable.virtual_anywhere.get(&signature).copied();
                called.or_else(|| escape.opaque.is_called_from_outside(signature)).filter(|_| method.is_virtual())
            });
            reachable.select_declared(known, methods, class, wanted);
            return;
        };
        for supertype in supertypes {
            let called = reachable.virtual_calls_on(supertype);
            let wanted = known.declared(class, |signature| is_among(&called, signature));
            reachable.select_declared(known, methods, class, wanted);
            escape.escape_again(&mut Ground { known, methods, likely }, reachable, class, supertype);
        }
        let ground = &mut Ground { known, methods, likely };
        escape.opaque.expose_if_open(ground, reachable, &mut escape.mentions, class);
        // What was not known is asked for when the class has been linked.
        known.ask_later();
    }
}
