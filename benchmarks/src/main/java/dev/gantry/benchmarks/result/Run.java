// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import java.time.Instant;

/// How a bench ran.
///
/// @param version of Gantry
/// @param commit of its sources; empty where that is not known
/// @param command that started it
/// @param device that loads went to
/// @param repeats wanted of each point
/// @param budgetSeconds after which no point gets more repeats
/// @param shortened points that have fewer repeats, because the budget was used up
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
