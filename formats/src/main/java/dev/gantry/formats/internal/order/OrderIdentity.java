// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.DatasetState;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;

/// Writes all that the order of samples depends on, apart from the epoch, as a [DatasetState#order]: 16
/// digits of a hash of the dataset, and the options in plain text, so that a message can say which of them
/// differ.
///
/// The rank is left out: where samples are reached by number, all ranks are at the same epoch and batch, so
/// any rank's state serves all of them.
public final class OrderIdentity {
  private static final int HASH_BYTES = 8;

  private OrderIdentity() {}

  /// @param dataset the dataset's identity
  /// @param fileSamples how many samples each file has; empty if that is not known
  public static String of(String dataset, List<Long> fileSamples, OrderOptions options) {
    return hash(dataset, fileSamples)
        + ",batch="
        + options.batchSize()
        + ",last="
        + options.lastBatch()
        + ",shuffle="
        + options.weights().map(SampleWeights::identity).orElseGet(() -> text(options.shuffle()))
        + ",interleave="
        + options.interleave()
        + "x"
        + options.interleaveBlock()
        + ",world="
        + options.world();
  }

  /// @throws MisuseException if a state's order is not this one, with the differences
  public static void check(String stored, String order) {
    if (stored.equals(order)) {
      return;
    }
    String[] was = stored.split(",", -1);
    String[] is = order.split(",", -1);
    if (was.length != is.length) {
      throw new MisuseException("the state is of another kind of dataset: '" + stored + "'");
    }
    if (!was[0].equals(is[0])) {
      throw new MisuseException(
          "the state is of another dataset or of other samples of it, or the files have changed: "
              + was[0]
              + ", not "
              + is[0]);
    }
    StringBuilder differences = new StringBuilder();
    for (int i = 1; i < is.length; i++) {
      if (!was[i].equals(is[i])) {
        differences.append(differences.isEmpty() ? "" : ", ").append(was[i]);
        differences.append(" (now ").append(is[i]).append(')');
      }
    }
    throw new MisuseException("the state is of another order of the samples: " + differences);
  }

  private static String text(Shuffle shuffle) {
    return switch (shuffle) {
      case Shuffle.None() -> "none";
      case Shuffle.Shards(long seed) -> "shards:" + seed;
      case Shuffle.Samples(long seed) -> "samples:" + seed;
      case Shuffle.Blocks(long seed, int samples) -> "blocks:" + seed + ":" + samples;
    };
  }

  private static String hash(String dataset, List<Long> fileSamples) {
    MessageDigest digest = sha256();
    for (long samples : fileSamples) {
      digest.update(ByteBuffer.allocate(Long.BYTES).putLong(0, samples));
    }
    // The -1 marks the end of the sizes, none of which is negative.
    digest.update(ByteBuffer.allocate(Long.BYTES).putLong(0, -1));
    byte[] hash = digest.digest(dataset.getBytes(StandardCharsets.UTF_8));
    return HexFormat.of().formatHex(hash, 0, HASH_BYTES);
  }

  /// Makes the hash by which datasets are told apart.
  public static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java has SHA-256", e);
    }
  }
}
