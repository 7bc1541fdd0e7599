// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.Device;
import dev.gantry.core.internal.session.GantrySession;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ScheduledExecutorService;

/// The data and tools that the activities of a phase share.
///
/// @param folder where they keep files
/// @param devices that tensors go to
/// @param session of this phase, which has no faults
/// @param timer brings faults about
record Scene(
    Path folder,
    List<Device> devices,
    long seed,
    KnownWeights weights,
    KnownSamples samples,
    GantrySession session,
    ScheduledExecutorService timer,
    Tally tally) {}
