package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.SequencedMap;

/// What an optimizer has learned about the parameters, by names that hold in any process. A
/// parameter that was never updated is in none of the maps.
///
/// @param kind DJL's name of the optimizer's class, such as `Adam`
/// @param arrays by state and path of the parameter, such as `means/01Linear_weight`; each of the
///     parameter's shape and type. They stay their owner's
/// @param updateCounts how often each parameter was updated, by its path. On several devices DJL
///     counts each of them
/// @param updates the count that learning rates follow: the highest of all, also of parameters that
///     are gone
public record OptimizerValues(
    String kind,
    SequencedMap<String, NDArray> arrays,
    SequencedMap<String, Integer> updateCounts,
    int updates) {
  public OptimizerValues {
    arrays = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(arrays));
    updateCounts = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(updateCounts));
  }
}
