// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.batches.FieldNormalization;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// Says which fields of a batch are data and which are labels.
///
/// @param data names of the fields that are data, in order
/// @param labels names of the fields that are labels, in order
/// @param normalizations the normalisation of each field that has one, by the field's name
public record FieldRoles(
    List<String> data, List<String> labels, Map<String, FieldNormalization> normalizations) {
  private static final Set<String> USUAL_LABELS = Set.of("label", "labels", "cls");

  public FieldRoles {
    data = List.copyOf(data);
    labels = List.copyOf(labels);
    normalizations = Map.copyOf(normalizations);
  }

  /// @param available the names of the dataset's fields
  /// @throws MisuseException if a field is unknown or named twice, if no field is data, or if
  ///     several fields could be the label and none is named
  public static FieldRoles of(
      List<String> available,
      Optional<List<String>> data,
      Optional<List<String>> labels,
      Map<String, FieldNormalization> normalizations) {
    boolean chosen = data.isPresent() || labels.isPresent();
    if (!chosen && available.stream().filter(name -> !isLength(name, available)).count() > 1) {
      requireLabel(available);
    }
    Set<String> taken = new HashSet<>(data.orElse(List.of()));
    List<String> labelFields =
        labels.orElseGet(() ->
            available.stream()
                .filter(name -> USUAL_LABELS.contains(name) && !taken.contains(name))
                .toList());
    List<String> dataFields =
        data.orElseGet(
            () -> available.stream().filter(name -> !labelFields.contains(name)).toList());
    FieldRoles roles = new FieldRoles(dataFields, labelFields, normalizations);
    roles.check(available);
    return roles;
  }

  /// Whether a field only says how long the values of another field are.
  private static boolean isLength(String name, List<String> available) {
    String suffix = FeatureSpec.LENGTH_SUFFIX;
    return name.endsWith(suffix)
        && available.contains(name.substring(0, name.length() - suffix.length()));
  }

  /// Requires a field with a usual name of a label. Without this check a label would be taken for
  /// data, and only the block would fail, or would learn from it.
  private static void requireLabel(List<String> available) {
    if (available.stream().noneMatch(USUAL_LABELS::contains)) {
      throw new MisuseException(
          "optLabels was not called, and none of the fields "
              + available
              + " is called label, labels or cls; name those that are labels by optLabels, without"
              + " any where there are none");
    }
  }

  /// All fields that are read, data first.
  public List<String> all() {
    List<String> all = new ArrayList<>(data);
    all.addAll(labels);
    return all;
  }

  private void check(List<String> available) {
    if (data.isEmpty()) {
      throw new MisuseException(
          "no field is data: labels are "
              + labels
              + " of "
              + available
              + "; add another field, or name one by optData");
    }
    Set<String> seen = new LinkedHashSet<>();
    for (String name : all()) {
      if (!available.contains(name)) {
        throw new MisuseException(
            option(name) + " names the field '" + name + "'; it must be one of " + available);
      }
      if (!seen.add(name)) {
        throw new MisuseException(
            "optData and optLabels name the field '" + name + "' twice; once is enough");
      }
    }
    for (String name : normalizations.keySet()) {
      if (!seen.contains(name)) {
        throw new MisuseException(
            "optNormalize names the field '" + name + "'; it must be one that is read: " + seen);
      }
    }
  }

  private String option(String name) {
    return data.contains(name) ? "optData" : "optLabels";
  }
}
