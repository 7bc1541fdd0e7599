// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.MisuseException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// The position of a dataset between two batches of this rank. It does not depend on how many batches are
/// prefetched.
///
/// @param order stands for all that the order of samples depends on, the epoch aside: files, batch
///     size, shuffling and its seed, world, and the rank where one rank's state is of no use to
///     another
/// @param epoch from 0
/// @param batch the number of the epoch's next batch, from 0
/// @param cursor the position in a stream's files, without spaces; empty where epoch and batch are enough
public record DatasetState(String order, long epoch, long batch, String cursor) {
  private static final Pattern TEXT =
      Pattern.compile(
          "gantry-dataset/1 order=(\\S*) epoch=(\\d{1,18}) batch=(\\d{1,18}) cursor=(\\S*)");

  public DatasetState {
    if (epoch < 0 || batch < 0) {
      throw new MisuseException("epoch " + epoch + ", batch " + batch);
    }
    if (order.chars().anyMatch(Character::isWhitespace)
        || cursor.chars().anyMatch(Character::isWhitespace)) {
      throw new MisuseException("white space in '" + order + "' or '" + cursor + "'");
    }
  }

  /// Returns the state at the beginning of an epoch of the same dataset.
  public DatasetState atEpoch(long number) {
    return new DatasetState(order, number, 0, "");
  }

  /// The epoch of the batch before this position.
  long epochBefore() {
    return batch > 0 ? epoch : epoch - 1;
  }

  /// Formats this as one line, for a checkpoint.
  public String toText() {
    return "gantry-dataset/1 order="
        + order
        + " epoch="
        + epoch
        + " batch="
        + batch
        + " cursor="
        + cursor;
  }

  /// @throws MisuseException if the text is not one of [#toText]
  public static DatasetState parse(String text) {
    Matcher matcher = TEXT.matcher(text);
    if (!matcher.matches()) {
      throw new MisuseException("this is not the state of a dataset: '" + text + "'");
    }
    return new DatasetState(
        matcher.group(1),
        Long.parseLong(matcher.group(2)),
        Long.parseLong(matcher.group(3)),
        matcher.group(4));
  }
}
