// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.Device;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.natives.NvJpeg;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.images.ImageDecoder.Options;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/// Compares pictures that the device decodes with pictures that the CPU decodes from the same
/// files. All show the picture that the stub of libnvjpeg knows: red grows from left to right,
/// green from top to bottom.
@Tag("gpu")
@ExtendWith(NoLeaks.class)
class DevicePicturesGpuTest {
  private static final int HEIGHT = 40;
  private static final int WIDTH = 56;
  private static final int BYTES = 3 * HEIGHT * WIDTH;
  private static final byte UNTOUCHED = 0x55;

  /// The tolerance for colours of half the resolution and for JPEG's rounding.
  private static final int MAX_DIFFERENCE = 12;

  private static final Options OPTIONS =
      new Options(
          HEIGHT,
          WIDTH,
          new Crop.RandomResized(0.3, 1, 0.75, 1.5),
          0.5,
          Kernel.BILINEAR,
          false,
          true,
          true,
          1 << 26);

  private final ConcurrentSkipListSet<Integer> byDevice = new ConcurrentSkipListSet<>();

  private static byte[] picture(int width, int height, int type, String format) {
    BufferedImage image = new BufferedImage(width, height, type);
    for (int y = 0; y < height; y++) {
      for (int x = 0; x < width; x++) {
        int red = 255 * x / (width - 1);
        int green = 255 * y / (height - 1);
        image.setRGB(x, y, red << 16 | green << 8 | 128);
      }
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try {
      assertThat(ImageIO.write(image, format, out)).isTrue();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toByteArray();
  }

  private static List<byte[]> colours() {
    return Stream.of(new int[][] {{300, 200}, {61, 97}, {640, 480}, {41, 33}, {150, 1000}})
        .map(size -> picture(size[0], size[1], BufferedImage.TYPE_INT_RGB, "jpeg"))
        .toList();
  }

  private static MemorySegment copied(byte[] bytes, Arena arena) {
    return arena.allocate(bytes.length).copyFrom(MemorySegment.ofArray(bytes));
  }

  private static void decode(Options options, byte[] picture, MemorySegment target, long seed) {
    try (Arena arena = Arena.ofConfined()) {
      new ImageDecoder(options).decode(copied(picture, arena), target, seed);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Decodes a batch of the pictures into a slot, and returns the slot's bytes.
  private byte[] onDevice(Options options, List<byte[]> pictures) {
    List<HostWrites.HostWriter> writers =
        IntStream.range(0, pictures.size())
            .<HostWrites.HostWriter>mapToObj(i ->
                memory -> {
                  MemorySegment target = memory.asSlice((long) i * BYTES, BYTES);
                  target.fill(UNTOUCHED);
                  decode(options, pictures.get(i), target, i);
                  if (target.mismatch(filled()) < 0) {
                    byDevice.add(i);
                  }
                })
            .toList();
    long bytes = (long) pictures.size() * BYTES;
    // The host writes do not begin at the start of the slot.
    HostWrites writes = new HostWrites(4096, bytes, writers);
    var plans = new ArrayList<>(List.of(new BatchPlan<>(List.of(), writes, List.of(), "a batch")));
    BatchPlanSource<String> source =
        () -> plans.isEmpty() ? Optional.empty() : Optional.of(plans.removeFirst());
    long slotBytes = (4096 + bytes + 4095) / 4096 * 4096;
    RingOptions ring =
        new RingOptions(new Device.Cuda(0), 2, slotBytes, bytes, TransferOptions.defaults(), false);
    try (GantrySession session = GantrySession.open();
        PrefetchRing<String> opened = session.ring(ring, source);
        RingBatch<String> batch = opened.next().orElseThrow()) {
      return TestFiles.bytes(batch.region(4096, bytes));
    }
  }

  private static MemorySegment filled() {
    byte[] all = new byte[BYTES];
    Arrays.fill(all, UNTOUCHED);
    return MemorySegment.ofArray(all);
  }

  private static void requireAlike(byte[] found, Options options, List<byte[]> pictures) {
    for (int i = 0; i < pictures.size(); i++) {
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment expected = arena.allocate(BYTES);
        decode(options, pictures.get(i), expected, i);
        int most = 0;
        for (int at = 0; at < BYTES; at++) {
          int value = expected.get(ValueLayout.JAVA_BYTE, at) & 0xFF;
          most = Math.max(most, Math.abs(value - (found[i * BYTES + at] & 0xFF)));
        }
        assertThat(most)
            .as("largest difference in picture %s", i)
            .isLessThanOrEqualTo(MAX_DIFFERENCE);
      }
    }
  }

  @Test
  void theDeviceCropsResizesAndMirrorsAsTheCpuDoes() {
    assumeTrue(NvJpeg.find().toOptional().isPresent(), () -> NvJpeg.find().toString());
    List<byte[]> pictures =
        Stream.of(colours(), colours(), colours()).flatMap(List::stream).toList();
    for (Options options :
        List.of(
            OPTIONS,
            OPTIONS.withKernel(Kernel.BICUBIC),
            OPTIONS.withCrop(new Crop.Window(64, false)),
            OPTIONS.withCrop(new Crop.Stretched()))) {
      byDevice.clear();
      requireAlike(onDevice(options, pictures), options, pictures);
      assertThat(byDevice).hasSize(pictures.size());
    }
  }

  @Test
  void theCpuDecodesWhatTheDeviceDoesNotBetweenTheDevicesPictures() {
    assumeTrue(NvJpeg.find().toOptional().isPresent(), () -> NvJpeg.find().toString());
    List<byte[]> pictures =
        List.of(
            picture(90, 70, BufferedImage.TYPE_INT_RGB, "png"),
            picture(90, 70, BufferedImage.TYPE_INT_RGB, "jpeg"),
            picture(90, 70, BufferedImage.TYPE_BYTE_GRAY, "jpeg"),
            picture(80, 90, BufferedImage.TYPE_INT_RGB, "jpeg"),
            picture(90, 70, BufferedImage.TYPE_INT_RGB, "png"),
            // The stub refuses this JPEG; a real library may accept it.
            picture(7, 60, BufferedImage.TYPE_INT_RGB, "jpeg"));
    requireAlike(onDevice(OPTIONS, pictures), OPTIONS, pictures);
    assertThat(byDevice).contains(1, 3).doesNotContain(0, 2, 4);
  }

  @Test
  void withoutTheOptionTheCpuDecodesAll() {
    Options options = OPTIONS.withOnDevice(false);
    requireAlike(onDevice(options, colours()), options, colours());
    assertThat(byDevice).isEmpty();
  }
}
