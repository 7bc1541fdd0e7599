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
/// @param ids the ids of the tokens, `[batch, length]`
/// @param mask 1 for a token and 0 for padding, of the same shape; null if nothing is padded
/// @param types the token types, of the same shape; null if all are 0
public record TextInputs(NDArray ids, @Nullable NDArray mask, @Nullable NDArray types) {
  private static final ScopedValue<Boolean> CHECKED = ScopedValue.newInstance();
  private static final List<String> NAMES =
      List.of("input_ids", "attention_mask", "token_type_ids");

  /// Assigns arrays to inputs. An array with an input's name is that input. Arrays without names
  /// are the remaining inputs, in the order of DJL's tokenizers. Arrays with other names count as
  /// unnamed if no array has an input's name.
  ///
  /// @param most how many inputs the model takes
  /// @throws MisuseException if there are more arrays than inputs, if an input is given twice, if
  ///     an array has an unknown name beside arrays with inputs' names, or if a shape or type is
  ///     wrong
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

  /// Runs a pass whose ids were checked before they were copied to the device. In it, no block
  /// copies the ids back for a check, because such a copy waits for all work that is queued on the
  /// device.
  public static <T> T checked(Supplier<T> pass) {
    return ScopedValue.where(CHECKED, true).call(pass::get);
  }

  /// Returns the ids of each text.
  public long[][] rows() {
    return rows(ids.toType(DataType.INT64, false));
  }

  /// Returns the ids of each text, with a padding token's id wherever the mask hides a token: the
  /// tokenizer may have padded the text with another token.
  ///
  /// @param padding the padding token's id; a negative number for none
  public long[][] rows(long padding) {
    NDArray wide = ids.toType(DataType.INT64, false);
    return rows(
        mask == null
            ? wide
            : wide.sub(padding).mul(mask.neq(0).toType(DataType.INT64, false)).add(padding));
  }

  private static long[][] rows(NDArray ids) {
    long[] all = ids.toLongArray();
    int length = (int) ids.getShape().get(1);
    long[][] rows = new long[all.length / length][];
    for (int i = 0; i < rows.length; i++) {
      rows[i] = Arrays.copyOfRange(all, i * length, (i + 1) * length);
    }
    return rows;
  }

  /// Checks the ids before libtorch does. On the CPU, libtorch's error does not name the id; on a
  /// GPU, it makes all later work of the process fail.
  ///
  /// @param vocabulary the number of tokens in the vocabulary
  /// @param kinds the number of token types
  /// @return these inputs, without the mask if it hides nothing: attention is faster without a
  ///     mask
  /// @throws MisuseException if an id is out of range
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

  /// Returns the lowest and the highest number of each array, by one copy from the device. For
  /// null, both are 0.
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
          "the input '%s' must have one of the names %s, as the other inputs do"
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
