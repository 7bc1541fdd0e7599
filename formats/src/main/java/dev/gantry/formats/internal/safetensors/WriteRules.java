// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.json.JsonWriter;
import java.util.Collection;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/// Checks that tensors and notes can be read again once they are written.
final class WriteRules {
  private WriteRules() {}

  /// @throws MisuseException naming the first thing that cannot be written
  static void check(Collection<NewTensor> tensors, Map<String, String> metadata) {
    if (tensors.size() > SafetensorsHeader.MAX_TENSORS) {
      throw new MisuseException(
          tensors.size() + " tensors, more than " + SafetensorsHeader.MAX_TENSORS);
    }
    Set<String> names = HashSet.newHashSet(tensors.size());
    long bytes = 0;
    for (NewTensor tensor : tensors) {
      check(tensor);
      if (!names.add(tensor.name())) {
        throw new MisuseException("two tensors of the name '" + tensor.name() + "'");
      }
      if (tensor.source().length() > Long.MAX_VALUE - bytes) {
        throw new MisuseException("tensors of more than 2⁶³-1 bytes together");
      }
      bytes += tensor.source().length();
    }
    if (metadata.size() > SafetensorsHeader.MAX_NOTES) {
      throw new MisuseException(
          metadata.size() + " notes, more than " + SafetensorsHeader.MAX_NOTES);
    }
    metadata.forEach((key, text) -> {
      JsonWriter.requireText("a note's key", key);
      JsonWriter.requireText("the note '" + key + "'", text);
    });
  }

  private static void check(NewTensor tensor) {
    JsonWriter.requireText("a tensor's name", tensor.name());
    if (tensor.name().equals(SafetensorsHeader.METADATA)) {
      throw new MisuseException("a tensor cannot have the name " + SafetensorsHeader.METADATA);
    }
    if (tensor.shape().rank() > SafetensorsHeader.MAX_RANK) {
      throw new MisuseException(
          "tensor '%s' has more than %s dimensions"
              .formatted(tensor.name(), SafetensorsHeader.MAX_RANK));
    }
  }
}
