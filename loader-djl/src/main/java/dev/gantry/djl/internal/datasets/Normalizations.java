// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import ai.djl.ndarray.types.DataType;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.internal.batches.FieldNormalization;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// Collects the normalisations of fields that `optNormalize` and `optChannelsFirst` of a dataset's
/// builder ask for. Not thread-safe.
public final class Normalizations {
  private static final Set<DataType> RESULTS =
      EnumSet.of(DataType.FLOAT32, DataType.FLOAT16, DataType.BFLOAT16);

  private final Map<String, FieldNormalization> byField = new LinkedHashMap<>();
  private final Set<String> channelsFirst = new LinkedHashSet<>();

  /// @throws MisuseException if a number is not finite, or `type` is no type that a normalised
  ///     field can have
  public void put(String field, float[] scale, float[] shift, DataType type) {
    String name = MisuseException.requireGiven("optNormalize: field", field);
    List<Float> scales = floats("optNormalize: scale", scale);
    List<Float> shifts = floats("optNormalize: shift", shift);
    if (!RESULTS.contains(MisuseException.requireGiven("optNormalize: type", type))) {
      throw new MisuseException(
          "optNormalize: type must be one of " + RESULTS + " (was " + type + ")");
    }
    byField.put(name, new FieldNormalization(scales, shifts, PyTorch.dtype(type), false));
  }

  private static List<Float> floats(String what, float[] values) {
    List<Float> floats = new ArrayList<>();
    for (float value : MisuseException.requireGiven(what, values)) {
      if (!Float.isFinite(value)) {
        throw new MisuseException(
            what + "[" + floats.size() + "] must be finite (was " + value + ")");
      }
      floats.add(value);
    }
    return floats;
  }

  public void putChannelsFirst(String field) {
    channelsFirst.add(MisuseException.requireGiven("optChannelsFirst: field", field));
  }

  /// Returns the normalisations by field.
  ///
  /// @throws MisuseException if `optChannelsFirst` names a field that is not normalised
  public Map<String, FieldNormalization> all() {
    Map<String, FieldNormalization> all = new LinkedHashMap<>(byField);
    for (String field : channelsFirst) {
      FieldNormalization normalization = all.get(field);
      if (normalization == null) {
        throw new MisuseException(
            "optChannelsFirst names the field '%s'; it must be one that optNormalize names: %s"
                .formatted(field, all.keySet()));
      }
      all.put(field, normalization.withChannelsFirst());
    }
    return all;
  }
}
