//! Real JVMs, real attaches. `cargo xtask test -- --test e2e -- roots::` runs the tests of one module, `-- jdk17` those on one JVM.

use std::process::ExitCode;

mod allocated;
mod budget;
mod bytecodes;
mod clocks;
mod console;
mod counted;
mod cpu_time;
mod deep_stacks;
mod demo;
mod doctor;
mod endings;
mod events;
mod exactness;
mod exceptions;
mod explaining;
mod exports;
mod footprint;
mod gentle;
mod guards;
mod handing_over;
mod interruption;
mod kernel_counters;
mod lambdas;
mod lifecycle;
mod likeness;
mod linkage;
mod live;
mod locks;
mod mentions;
mod native_code;
mod natives;
mod open_calls;
mod other_agents;
mod receivers;
mod reflection;
mod refusals;
mod regions;
mod roots;
mod sampling;
mod scripts;
mod sites;
mod snapshots;
mod spellings;
mod stopped_tool;
mod storm;
mod strangers;
mod subgraph;
mod subgraph_jdk;
mod subgraph_loading;
mod switched;
mod threads;
mod tomcat;
mod top;
mod tracks;
mod truth;
mod tutorial;
mod two_builds;
mod unnamed;
mod watch;

fn main() -> ExitCode {
    headwater_tests::trials::run([
        allocated::trials(),
        budget::trials(),
        bytecodes::trials(),
        clocks::trials(),
        console::trials(),
        counted::trials(),
        cpu_time::trials(),
        demo::trials(),
        doctor::trials(),
        endings::trials(),
        events::trials(),
        exceptions::trials(),
        exactness::trials(),
        explaining::trials(),
        exports::trials(),
        footprint::trials(),
        gentle::trials(),
        guards::trials(),
        handing_over::trials(),
        interruption::trials(),
        kernel_counters::trials(),
        lambdas::trials(),
        lifecycle::trials(),
        likeness::trials(),
        linkage::trials(),
        locks::trials(),
        live::trials(),
        mentions::trials(),
        natives::trials(),
        deep_stacks::trials(),
        native_code::trials(),
        open_calls::trials(),
        other_agents::trials(),
        receivers::trials(),
        reflection::trials(),
        refusals::trials(),
        regions::trials(),
        roots::trials(),
        sampling::trials(),
        scripts::trials(),
        sites::trials(),
        snapshots::trials(),
        spellings::trials(),
        stopped_tool::trials(),
        storm::trials(),
        strangers::trials(),
        subgraph::trials(),
        subgraph_jdk::trials(),
        subgraph_loading::trials(),
        switched::trials(),
        threads::trials(),
        tomcat::trials(),
        top::trials(),
        tracks::trials(),
        truth::trials(),
        tutorial::trials(),
        two_builds::trials(),
        unnamed::trials(),
        watch::trials(),
    ])
}
