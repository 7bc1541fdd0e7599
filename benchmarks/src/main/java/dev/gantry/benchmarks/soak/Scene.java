// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.Device;
import dev.gantry.core.internal.session.GantrySession;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ScheduledExecutorService;

/// The data and tools that the activities of a phase share.
///
/// @param folder the folder in which the activities keep files
/// @param devices the devices to which tensors are loaded
/// @param session the session of this phase, which has no faults
/// @param timer runs the actions that cause faults
record Scene(
    Path folder,
    List<Device> devices,
    long seed,
    KnownWeights weights,
    KnownSamples samples,
    GantrySession session,
    ScheduledExecutorService timer,
    Tally tally) {}
