// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import java.time.Instant;

/// The circumstances of one run of a bench.
///
/// @param version the version of Gantry
/// @param commit the commit of Gantry's sources; empty if unknown
/// @param command the command line that started the bench
/// @param device the device that received the loads
/// @param repeats how many repeats of each point were requested
/// @param budgetSeconds the time after which no point gets more repeats
/// @param seconds how long the bench ran
/// @param shortened how many points have fewer repeats, because the budget was used up
public record Run(
    String version,
    String commit,
    String command,
    Instant date,
    String device,
    boolean quick,
    int repeats,
    int budgetSeconds,
    double seconds,
    int shortened) {}
