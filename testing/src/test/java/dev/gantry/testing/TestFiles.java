// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import dev.gantry.core.Extent;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.Loaded;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/// Files whose bytes a seed determines.
public final class TestFiles {
  private TestFiles() {}

  public static byte[] bytes(long seed, int length) {
    byte[] bytes = new byte[length];
    new Random(seed).nextBytes(bytes);
    return bytes;
  }

  /// Writes and synchronises a file of `length` bytes. Its pages are clean then, so they can leave
  /// the page cache.
  public static Path write(Path file, long seed, int length) {
    try {
      Files.write(file, bytes(seed, length));
      try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
        channel.force(true);
      }
      return file;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Returns the bytes of an extent, read from its file.
  public static byte[] expected(Extent extent) {
    try (FileChannel channel = FileChannel.open(extent.file().path())) {
      ByteBuffer buffer = ByteBuffer.allocate(Math.toIntExact(extent.length()));
      while (buffer.hasRemaining()) {
        if (channel.read(buffer, extent.offset() + buffer.position()) < 0) {
          throw new IllegalArgumentException(extent + " is not in the file");
        }
      }
      return buffer.array();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Copies the bytes of a region of any device.
  public static byte[] bytes(Region region) {
    byte[] copy = new byte[Math.toIntExact(region.length())];
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment target = arena.allocate(Math.max(1, copy.length));
      region.copyTo(target);
      MemorySegment.copy(target, ValueLayout.JAVA_BYTE, 0, copy, 0, copy.length);
    }
    return copy;
  }

  /// Describes the first extent whose region differs from the file or breaks the alignment; empty
  /// if there is none.
  public static String firstDifference(Loaded loaded, List<ExtentRequest> wanted) {
    for (int i = 0; i < wanted.size(); i++) {
      Region region = loaded.regions().get(i);
      if (region.address() % wanted.get(i).alignmentBytes() != 0) {
        return "misaligned: " + wanted.get(i) + " at address " + region.address();
      }
      int at = Arrays.mismatch(bytes(region), expected(wanted.get(i).extent()));
      if (at >= 0) {
        return "byte " + at + " differs: " + wanted.get(i);
      }
    }
    return "";
  }
}
