// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.MisuseException;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The inputs of a model of texts.
///
/// @param ids `[batch, length]`
/// @param mask of that shape: 1 for a token, 0 for padding
/// @param types of that shape
public record TextInputs(NDArray ids, @Nullable NDArray mask, @Nullable NDArray types) {
  private static final ScopedValue<Boolean> CHECKED = ScopedValue.newInstance();
  private static final List<String> NAMES =
      List.of("input_ids", "attention_mask", "token_type_ids");

  /// An array that has the name of an input is that input. Arrays without names are the remaining inputs, in
  /// the order that DJL's tokenizers give; so are arrays with other names, if no array has an input's name.
  ///
  /// @param most how many of them the model takes
  /// @throws MisuseException if there are more, one is given twice, one has an unknown name beside others with
  ///     inputs' names, or a shape or type is not right
  public static TextInputs of(NDList inputs, int most) {
    List<String> known = NAMES.subList(0, most);
    @Nullable NDArray[] placed = new @Nullable NDArray[NAMES.size()];
    Deque<NDArray> unnamed = new ArrayDeque<>();
    for (NDArray input : inputs) {
      int place = input.getName() == null ? -1 : known.indexOf(input.getName());
      if (place < 0) {
        unnamed.add(input);
      } else if (placed[place] == null) {
        placed[place] = input;
      } else {
        throw new MisuseException("the input '" + known.get(place) + "' is given twice");
      }
    }
    if (unnamed.size() < inputs.size()) {
      unnamed.forEach(input -> requireNoName(input, known));
    }
    for (int place = 0; place < most; place++) {
      if (placed[place] == null) {
        placed[place] = unnamed.poll();
      }
    }
    NDArray ids = placed[0];
    if (ids == null || !unnamed.isEmpty()) {
      throw new MisuseException(
          "the inputs must be %s, of which only the first must be given (were %s)"
              .formatted(String.join(", ", known), inputs.size()));
    }
    return new TextInputs(ids(ids), like(ids, placed, 1), like(ids, placed, 2));
  }

  /// Computes a pass whose ids were checked before they were copied to the device, so that no block copies them back, which
  /// would wait for all that the device has queued.
  public static <T> T checked(Supplier<T> pass) {
    return ScopedValue.where(CHECKED, true).call(pass::get);
  }

  /// The ids of each text.
  public long[][] rows() {
    long[] all = ids.toType(DataType.INT64, false).toLongArray();
    int length = (int) ids.getShape().get(1);
    long[][] rows = new long[all.length / length][];
    for (int i = 0; i < rows.length; i++) {
      rows[i] = Arrays.copyOfRange(all, i * length, (i + 1) * length);
    }
    return rows;
  }

  /// Checks ids before libtorch does: its error names no id on the CPU, and on a GPU makes all later work of
  /// the process fail.
  ///
  /// @param vocabulary how many tokens the model knows
  /// @param kinds how many token types it knows
  /// @return these without a mask that hides nothing: without one, attention is faster
  /// @throws MisuseException if an id is none of these
  public TextInputs checked(int vocabulary, int kinds) {
    if (CHECKED.isBound()) {
      return this;
    }
    long[] extents = extents(Arrays.asList(ids, types, mask == null ? null : mask.neq(0)));
    if (extents[0] < 0 || extents[1] >= vocabulary) {
      throw unknown(ids, 0, vocabulary, "tokens");
    }
    if (types != null && (extents[2] < 0 || extents[3] >= kinds)) {
      throw unknown(types, 2, kinds, "token types");
    }
    return mask != null && extents[4] == 0 ? this : new TextInputs(ids, null, types);
  }

  /// The least and the greatest number of each array, by one copy from its device. Two zeros stand for null.
  private static long[] extents(List<@Nullable NDArray> arrays) {
    NDManager manager = Objects.requireNonNull(arrays.getFirst()).getManager();
    NDList found = new NDList();
    for (NDArray array : arrays) {
      NDArray wide =
          array == null
              ? manager.zeros(new Shape(1), DataType.INT64)
              : array.toType(DataType.INT64, false);
      found.addAll(List.of(wide.min(), wide.max()));
    }
    return NDArrays.stack(found).toLongArray();
  }

  private static MisuseException unknown(NDArray given, int place, int bound, String what) {
    long[] values = given.toType(DataType.INT64, false).toLongArray();
    int i = 0;
    while (values[i] >= 0 && values[i] < bound) {
      i++;
    }
    long length = given.getShape().get(1);
    return new MisuseException(
        "%s must be 0 to %d (was %d at [%d, %d]): the model knows %d %s"
            .formatted(
                NAMES.get(place), bound - 1, values[i], i / length, i % length, bound, what));
  }

  private static void requireNoName(NDArray input, List<String> known) {
    if (input.getName() != null) {
      throw new MisuseException(
          "the input '%s' is none of %s, by whose names others are given"
              .formatted(input.getName(), String.join(", ", known)));
    }
  }

  private static NDArray ids(NDArray ids) {
    DataType type = ids.getDataType();
    if (ids.getShape().dimension() != 2 || ids.size() == 0) {
      throw new MisuseException(
          "input_ids must be of shape (batch, length), with a token or more (was "
              + ids.getShape()
              + ")");
    }
    if (type != DataType.INT64 && type != DataType.INT32) {
      throw new MisuseException("input_ids must be INT64 or INT32 (was " + type + ")");
    }
    return ids;
  }

  private static @Nullable NDArray like(NDArray ids, @Nullable NDArray[] placed, int place) {
    NDArray given = placed[place];
    if (given != null && !given.getShape().equals(ids.getShape())) {
      throw new MisuseException(
          "%s must be of the shape of input_ids, %s (was %s)"
              .formatted(NAMES.get(place), ids.getShape(), given.getShape()));
    }
    return given;
  }
}
