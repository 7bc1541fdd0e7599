package dev.gantry.djl.internal;

import ai.djl.util.RandomUtils;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;

/// DJL's generator in Java, from which its samplers take the order of an epoch when that begins.
/// Its state is the 48 bits of `java.util.Random`, as 8 bytes, big endian.
///
/// A Gaussian number that `Random` has drawn in advance is not kept; of DJL, only the initial
/// values of a truncated normal distribution use those.
final class JavaRandom extends RandomSource {
  /// What `Random#setSeed` mixes into a seed, and how many bits it keeps; both are part of its
  /// specification.
  private static final long MULTIPLIER = 0x5DEECE66DL;

  private static final long MASK = (1L << 48) - 1;

  @Override
  public String name() {
    return "java";
  }

  @Override
  public State state() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(RandomUtils.RANDOM);
    } catch (IOException fault) {
      throw new UncheckedIOException("writing to memory", fault);
    }
    // The serialized form is specified: its fields' values in the order of their names
    // (haveNextNextGaussian, nextNextGaussian, seed), then one byte that ends the object.
    long seed = ByteBuffer.wrap(bytes.toByteArray()).getLong(bytes.size() - 1 - Long.BYTES);
    return State.Known.of(ByteBuffer.allocate(Long.BYTES).putLong(seed).array());
  }

  @Override
  boolean isValid(byte[] saved) {
    return saved.length == Long.BYTES && (ByteBuffer.wrap(saved).getLong() & ~MASK) == 0;
  }

  @Override
  void write(byte[] saved) {
    RandomUtils.RANDOM.setSeed(ByteBuffer.wrap(saved).getLong() ^ MULTIPLIER);
  }
}
