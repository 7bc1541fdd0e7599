// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import org.jspecify.annotations.Nullable;

/// The process's standard output. Unlike [System#out], it remembers why bytes could not be written.
public final class StandardOutput extends FilterOutputStream {
  private @Nullable IOException failure;

  public StandardOutput() {
    super(new FileOutputStream(FileDescriptor.out));
  }

  /// Returns a writer of text in the encoding that the process's environment asks for.
  public PrintWriter writer() {
    return new PrintWriter(new OutputStreamWriter(this, System.out.charset()), true);
  }

  /// Why bytes could not be written; empty if all were written so far.
  public String failure() {
    return failure == null ? "" : String.valueOf(failure.getMessage());
  }

  @Override
  public void write(int single) throws IOException {
    write(new byte[] {(byte) single}, 0, 1);
  }

  @Override
  public void write(byte[] bytes, int offset, int length) throws IOException {
    try {
      out.write(bytes, offset, length);
    } catch (IOException e) {
      failure = e;
      throw e;
    }
  }
}
