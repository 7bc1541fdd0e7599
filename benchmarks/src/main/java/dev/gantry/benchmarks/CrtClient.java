// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.core.Location;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import software.amazon.awssdk.crt.CRT;
import software.amazon.awssdk.crt.auth.credentials.CredentialsProvider;
import software.amazon.awssdk.crt.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.crt.auth.signing.AwsSigningConfig;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.http.HttpRequest;
import software.amazon.awssdk.crt.io.ClientBootstrap;
import software.amazon.awssdk.crt.s3.S3BorrowedBuffer;
import software.amazon.awssdk.crt.s3.S3BorrowedBufferDelivery;
import software.amazon.awssdk.crt.s3.S3Client;
import software.amazon.awssdk.crt.s3.S3ClientOptions;
import software.amazon.awssdk.crt.s3.S3DirectBufferPoolOptions;
import software.amazon.awssdk.crt.s3.S3FinishedResponseContext;
import software.amazon.awssdk.crt.s3.S3MetaRequest;
import software.amazon.awssdk.crt.s3.S3MetaRequestOptions;
import software.amazon.awssdk.crt.s3.S3MetaRequestResponseHandler;

/// Transfers objects with Amazon's CRT client alone. Each object is one request, which the client
/// splits into parts by itself.
final class CrtClient implements AutoCloseable {
  private static final long PART_BYTES = 8L << 20;
  private static final long POOL_BYTES = 2000L << 20;
  private static final double LINE_GBPS = 100;

  /// An object, and its size in bytes.
  record Item(Location.Remote location, long bytes) {
    private String path() {
      return "/" + location.uri().getRawAuthority() + location.uri().getRawPath();
    }
  }

  private final Arena arena = Arena.ofShared();
  private final Map<Item, MemorySegment> targets = new HashMap<>();
  private final URI endpoint = URI.create(setting("aws.endpointUrlS3", "AWS_ENDPOINT_URL_S3"));
  private final CredentialsProvider credentials =
      new StaticCredentialsProvider.StaticCredentialsProviderBuilder()
          .withAccessKeyId(utf8(setting("aws.accessKeyId", "AWS_ACCESS_KEY_ID")))
          .withSecretAccessKey(utf8(setting("aws.secretAccessKey", "AWS_SECRET_ACCESS_KEY")))
          .build();
  private final AwsSigningConfig signing =
      AwsSigningConfig.getDefaultS3SigningConfig(setting("aws.region", "AWS_REGION"), credentials);
  private final S3Client client =
      new S3Client(
          new S3ClientOptions()
              .withRegion(setting("aws.region", "AWS_REGION"))
              .withSigningConfig(signing)
              .withClientBootstrap(ClientBootstrap.getOrCreateStaticDefault())
              .withPartSize(PART_BYTES)
              .withThroughputTargetGbps(LINE_GBPS)
              .withDirectBufferPoolOptions(
                  S3DirectBufferPoolOptions.elastic(POOL_BYTES / 4, POOL_BYTES)));

  private static String setting(String property, String variable) {
    return System.getProperty(property, System.getenv(variable));
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /// Downloads objects into memory, which is allocated when an object is first downloaded.
  void download(List<Item> items) {
    List<CompletableFuture<Void>> ends = new ArrayList<>();
    for (Item item : items) {
      ends.add(download(item, targets.computeIfAbsent(item, one -> arena.allocate(one.bytes()))));
    }
    ends.forEach(CompletableFuture::join);
  }

  void upload(Path file, Location.Remote target) throws IOException {
    Handler handler = new Handler(MemorySegment.NULL);
    HttpHeader[] headers = {
      new HttpHeader("Host", endpoint.getRawAuthority()),
      new HttpHeader("Content-Length", Long.toString(Files.size(file)))
    };
    S3MetaRequest request =
        client.makeMetaRequest(
            new S3MetaRequestOptions()
                .withMetaRequestType(S3MetaRequestOptions.MetaRequestType.PUT_OBJECT)
                .withRequestFilePath(file)
                .withHttpRequest(new HttpRequest("PUT", new Item(target, 0).path(), headers, null))
                .withEndpoint(endpoint)
                .withResponseHandler(handler));
    handler.end.whenComplete((_, _) -> request.close()).join();
  }

  private CompletableFuture<Void> download(Item item, MemorySegment target) {
    Handler handler = new Handler(target);
    HttpHeader[] headers = {new HttpHeader("Host", endpoint.getRawAuthority())};
    S3MetaRequest request =
        client.makeMetaRequest(
            new S3MetaRequestOptions()
                .withMetaRequestType(S3MetaRequestOptions.MetaRequestType.GET_OBJECT)
                .withHttpRequest(new HttpRequest("GET", item.path(), headers, null))
                .withEndpoint(endpoint)
                .withResponseHandler(handler));
    return handler.end.whenComplete((_, _) -> request.close());
  }

  @Override
  public void close() {
    client.close();
    client.getShutdownCompleteFuture().join();
    signing.close();
    credentials.close();
    arena.close();
  }

  private static final class Handler
      implements S3MetaRequestResponseHandler, S3BorrowedBufferDelivery {
    private final MemorySegment target;
    private final CompletableFuture<Void> end = new CompletableFuture<>();

    Handler(MemorySegment target) {
      this.target = target;
    }

    @Override
    public int onResponseBodyBorrowed(S3BorrowedBuffer buffer, long from, long to) {
      try (buffer) {
        MemorySegment bytes = MemorySegment.ofBuffer(buffer.asByteBuffer());
        MemorySegment.copy(bytes, 0, target, from, bytes.byteSize());
      }
      return 0;
    }

    @Override
    public void onFinished(S3FinishedResponseContext context) {
      if (context.getErrorCode() == 0) {
        end.complete(null);
      } else {
        end.completeExceptionally(
            new IllegalStateException(CRT.awsErrorString(context.getErrorCode())));
      }
    }
  }
}
