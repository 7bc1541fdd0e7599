package dev.gantry.djl.internal.training;

import dev.gantry.djl.internal.guard.ArrayKind;
import java.util.SequencedMap;

/// An [OptimizerValues] without the values: what has to fit before they are read.
///
/// @param arrays what each of them is, by state and path of the parameter
public record SavedOptimizer(
    String kind,
    SequencedMap<String, ArrayKind> arrays,
    SequencedMap<String, Integer> updateCounts,
    int updates) {}
