// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.digest;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;

/// Keeps values in a temporary file, because they are printed only after all input has been
/// checked.
final class Spool implements AutoCloseable {
  static final int BUFFER_BYTES = 128 << 10;

  /// The file's name is deleted when the file is opened. Therefore the kernel frees the file when
  /// it is closed, and when the process is killed.
  private final FileChannel file;

  private final DataOutputStream out;

  Spool() {
    try {
      file =
          FileChannel.open(
              Files.createTempFile("gantry-digests-", ""),
              StandardOpenOption.READ,
              StandardOpenOption.WRITE,
              StandardOpenOption.DELETE_ON_CLOSE);
    } catch (IOException e) {
      throw failed("made", e);
    }
    out =
        new DataOutputStream(
            new BufferedOutputStream(Channels.newOutputStream(file), BUFFER_BYTES));
  }

  /// Returns the exception for an operation of the file that failed.
  ///
  /// @param done what the file cannot be
  static UncheckedIOException failed(String done, IOException cause) {
    return new UncheckedIOException(
        "the temporary file of digests in %s cannot be %s"
            .formatted(System.getProperty("java.io.tmpdir"), done),
        cause);
  }

  /// Appends a value: the writer writes it.
  void add(Writer writer) {
    try {
      writer.write(out);
    } catch (IOException e) {
      throw failed("written", e);
    }
  }

  /// Writes one value.
  @FunctionalInterface
  interface Writer {
    void write(DataOutputStream out) throws IOException;
  }

  /// Returns a stream of all values, from the first one.
  DataInputStream read() throws IOException {
    out.flush();
    return new DataInputStream(
        new BufferedInputStream(Channels.newInputStream(file.position(0)), BUFFER_BYTES));
  }

  @Override
  public void close() {
    try {
      file.close();
    } catch (IOException e) {
      throw failed("closed", e);
    }
  }
}
