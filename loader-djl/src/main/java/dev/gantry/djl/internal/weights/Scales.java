// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.formats.spi.StoredTensor;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;

/// Which quantised tensors of some weights have scales. For a tensor `NAME`, that is the tensor
/// `NAME_scale_inv` or `NAME_scale`, whatever the name says, a factor of the stored values. Immutable.
///
/// @param byTensor a tensor's scales
/// @param tensors the tensors, by their scales' names
/// @param blockSize rows and columns of a block, where the model's configuration says them
public record Scales(
    Map<String, StoredTensor> byTensor,
    Map<String, String> tensors,
    Optional<BlockSize> blockSize) {
  /// How many rows and columns share a scale.
  public record BlockSize(long rows, long columns) {}

  public static final Scales NONE = new Scales(Map.of(), Map.of(), Optional.empty());

  public static Scales of(
      SequencedMap<String, StoredTensor> tensors, Optional<BlockSize> blockSize) {
    Map<String, StoredTensor> byTensor = new HashMap<>();
    Map<String, String> names = new HashMap<>();
    for (StoredTensor tensor : tensors.values()) {
      if (!isQuantised(tensor.dtype())) {
        continue;
      }
      for (String suffix : new String[] {"_scale_inv", "_scale"}) {
        StoredTensor scale = tensors.get(tensor.name() + suffix);
        if (scale != null) {
          byTensor.put(tensor.name(), scale);
          names.put(scale.name(), tensor.name());
          break;
        }
      }
      if (byTensor.containsKey(tensor.name())
          && tensors.containsKey(tensor.name() + "_zero_point")) {
        throw new MisuseException(
            "tensor '"
                + tensor.name()
                + "' has zero points beside its scales, which cannot be cast");
      }
    }
    return new Scales(byTensor, names, blockSize);
  }

  private static boolean isQuantised(DType dtype) {
    return switch (dtype) {
      case I8, F8_E5M2, F8_E4M3, F8_E4M3FNUZ, F8_E5M2FNUZ -> true;
      case BOOL,
          U8,
          I16,
          U16,
          I32,
          U32,
          I64,
          U64,
          F16,
          BF16,
          F32,
          F64,
          C64,
          F4,
          F6_E2M3,
          F6_E3M2,
          F8_E8M0 ->
          false;
    };
  }

  boolean has(String tensor) {
    return byTensor.containsKey(tensor);
  }

  /// Whether these are scales of a tensor that is cast, so that nobody needs them as an array.
  boolean areOfCast(String name, TypePolicy types) {
    String tensor = tensors.get(name);
    return tensor != null && types.of(tensor).isPresent();
  }

  /// Whether these are scales of this tensor's.
  boolean areOf(String name, String tensor) {
    return tensor.equals(tensors.get(name));
  }

  /// The rows of a piece of a tensor, so that no block of scales is divided.
  long wholeBlocks(String tensor, long rows) {
    return rows;
  }
}
