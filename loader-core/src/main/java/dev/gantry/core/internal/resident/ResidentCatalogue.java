// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import dev.gantry.core.internal.plan.ExtentRequest;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/// The catalogue of the files that a server keeps in memory; its clients receive the catalogue
/// together with the descriptors.
///
/// @param version the version of the weights: 1 at first, one more each time that they are
///     replaced
/// @param gpu the UUID of the GPU that has the tensors, since a GPU's ordinal may differ between
///     processes; empty if the tensors are in host memory
/// @param entry the file to open; empty to open all files as a folder
public record ResidentCatalogue(int version, String gpu, String entry, List<ResidentPart> parts) {
  private static final String UNREADABLE =
      "the catalogue of resident weights is not as this version writes it";
  private static final Pattern UUID = Pattern.compile("GPU(-[0-9a-f]+){5}");

  public ResidentCatalogue {
    parts = List.copyOf(parts);
  }

  int descriptors() {
    return parts.stream().mapToInt(ResidentPart::descriptors).sum();
  }

  /// Returns the bytes to send: the components as `DataOutputStream` writes them, each text as its
  /// length and its UTF-8 bytes, and the files last, without their number.
  byte[] toBytes() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeInt(version);
      writeText(out, gpu);
      writeText(out, entry);
      for (ResidentPart part : parts) {
        writeText(out, part.name());
        out.writeLong(part.size());
        out.writeLong(part.hostPhase());
        out.writeLong(part.deviceFrom());
        out.writeLong(part.deviceTo());
        out.writeLong(part.deviceCapacity());
      }
    } catch (IOException e) {
      throw new UncheckedIOException("memory cannot be written to", e);
    }
    return bytes.toByteArray();
  }

  private static void writeText(DataOutputStream out, String text) throws IOException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    out.writeInt(bytes.length);
    out.write(bytes);
  }

  private static String readText(DataInputStream in) throws IOException {
    int length = in.readInt();
    require(length >= 0 && length <= in.available());
    return new String(in.readNBytes(length), StandardCharsets.UTF_8);
  }

  /// @throws IOException if the bytes are not a catalogue, or the catalogue's numbers contradict
  ///     each other
  static ResidentCatalogue parse(byte[] bytes) throws IOException {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      int version = in.readInt();
      String gpu = readText(in);
      String entry = readText(in);
      require(version > 0 && (gpu.isEmpty() || UUID.matcher(gpu).matches()));
      List<ResidentPart> parts = new ArrayList<>();
      Set<String> names = new HashSet<>();
      while (in.available() > 0) {
        ResidentPart part = part(in);
        require(names.add(part.name()) && !(part.isOnDevice() && gpu.isEmpty()));
        parts.add(part);
      }
      require(entry.isEmpty() || names.contains(entry));
      return new ResidentCatalogue(version, gpu, entry, parts);
    } catch (EOFException e) {
      throw new IOException(UNREADABLE, e);
    }
  }

  private static ResidentPart part(DataInputStream in) throws IOException {
    ResidentPart part =
        new ResidentPart(
            readText(in),
            in.readLong(),
            in.readLong(),
            in.readLong(),
            in.readLong(),
            in.readLong());
    long from = part.deviceFrom();
    long to = part.deviceTo();
    require(!part.name().isEmpty() && !part.name().contains("/"));
    require(part.hostPhase() >= 0 && part.hostPhase() < ExtentRequest.MAX_ALIGNMENT_BYTES);
    require(0 <= from && from <= to && to <= part.size());
    require(part.size() <= Long.MAX_VALUE - part.hostPhase() && to - from <= part.deviceCapacity());
    return part;
  }

  private static void require(boolean valid) throws IOException {
    if (!valid) {
      throw new IOException(UNREADABLE);
    }
  }
}
