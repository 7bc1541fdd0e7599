// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.store.RemoteFault;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.awscore.exception.AwsErrorDetails;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.crt.CRT;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.s3.S3FinishedResponseContext;
import software.amazon.awssdk.profiles.ProfileFileSystemSetting;
import software.amazon.awssdk.services.s3.model.S3Exception;

/// Says what went wrong with a request, in one line and without anything secret: a server's message may name
/// the key of the credentials, so only messages of known kinds are shown.
final class S3Errors {
  private static final Pattern CODE = Pattern.compile("<Code>([A-Za-z0-9.]{1,80})</Code>");

  /// The codes of S3 after which another attempt may succeed, whatever the status.
  private static final Set<String> PASSING_CODES =
      Set.of(
          "SlowDown", "InternalError", "RequestTimeout", "ServiceUnavailable", "OperationAborted");

  /// The CRT's names of connections that were lost, or brought too little.
  private static final Pattern LOST =
      Pattern.compile(
          "AWS_IO_(SOCKET|DNS|TLS_NEGOTIATION).*|AWS_ERROR_HTTP_(CONNECTION|SERVER|CHANNEL).*"
              + "|AWS_ERROR_HTTP_RESPONSE_FIRST_BYTE_TIMEOUT|AWS_ERROR_S3_REQUEST_TIME.*");

  /// The statuses by which AWS says that a bucket is in another region.
  private static final Set<Integer> WRONG_REGION = Set.of(301, 307, 400);

  private static final Pattern REGION = Pattern.compile("[a-z0-9-]{1,40}");

  /// How the SDK begins to say that no answer came.
  private static final String NOT_SENT = "Failed to send the request: ";

  private S3Errors() {}

  /// The failure that an exception of the SDK stands for, with the server's address if the server was not
  /// reached.
  static TransferException of(String operation, String subject, URI url, SdkException reason) {
    String message = String.valueOf(reason.getMessage());
    if (reason instanceof S3Exception || !message.startsWith(NOT_SENT)) {
      return of(operation, subject, reason);
    }
    String why = message.substring(NOT_SENT.length()).replaceFirst(" \\(SDK Attempt Count.*", "");
    return new TransferException(
        operation,
        subject,
        new Failure.Remote(
            0, url.getScheme() + "://" + url.getAuthority() + " was not reached: " + why));
  }

  /// The failure that an exception of the SDK stands for.
  static TransferException of(String operation, String subject, Throwable reason) {
    return switch (reason) {
      case S3Exception e -> {
        @Nullable AwsErrorDetails details = e.awsErrorDetails();
        @Nullable String code = details == null ? null : details.errorCode();
        yield region(e)
            .map(region ->
                new TransferException(
                    operation,
                    subject,
                    new Failure.Remote(
                        e.statusCode(),
                        "the bucket is in region " + region + ": set AWS_REGION=" + region)))
            .orElseGet(() -> of(operation, subject, e.statusCode(), code == null ? "" : code, ""));
      }
      case TransferException known -> known;
      case SdkException e ->
          new TransferException(operation, subject, new Failure.Remote(0, line(e)));
      default ->
          new TransferException(
              operation,
              subject,
              new Failure.Remote(0, String.valueOf(reason.getMessage())),
              reason);
    };
  }

  /// The region of a bucket, where an answer refuses a request because another region was asked.
  private static Optional<String> region(S3Exception refused) {
    @Nullable AwsErrorDetails details = refused.awsErrorDetails();
    return details == null || !WRONG_REGION.contains(refused.statusCode())
        ? Optional.empty()
        : Optional.ofNullable(details.sdkHttpResponse())
            .flatMap(answer -> answer.firstMatchingHeader("x-amz-bucket-region"))
            .filter(region -> REGION.matcher(region).matches());
  }

  /// Why an attempt of the CRT's client failed.
  static RemoteFault fault(S3FinishedResponseContext end) {
    byte[] body = end.getErrorPayload();
    Matcher found = CODE.matcher(body == null ? "" : new String(body, StandardCharsets.UTF_8));
    String code = found.find() ? found.group(1) : "";
    String name = CRT.awsErrorName(end.getErrorCode());
    int status = status(end, name);
    boolean passes =
        RemoteFault.isPassing(status)
            || PASSING_CODES.contains(code)
            || CRT.awsIsTransientError(end.getErrorCode())
            || LOST.matcher(name).matches();
    String reason =
        reason(status, code, CRT.awsErrorString(end.getErrorCode()) + " (" + name + ")");
    return RemoteFault.of(passes, status >= 300 ? status : 0, reason, retryAfter(end, name));
  }

  /// The fault of an answer that has an error in its body in spite of its status.
  static RemoteFault fault(int status, String code) {
    return RemoteFault.of(PASSING_CODES.contains(code), 0, reason(status, code, ""), "");
  }

  /// The value of `Retry-After`. Where the CRT has itself repeated a request that was one too many, it withholds the
  /// headers; then it is a second, as AWS's SDKs wait at least.
  private static String retryAfter(S3FinishedResponseContext end, String name) {
    HttpHeader[] headers = end.getErrorHeaders();
    return headers == null || headers.length == 0
        ? name.equals("AWS_ERROR_S3_SLOW_DOWN") ? "1" : ""
        : Arrays.stream(headers)
            .filter(header -> header.getName().equalsIgnoreCase("Retry-After"))
            .map(HttpHeader::getValue)
            .findFirst()
            .orElse("");
  }

  /// The HTTP status of a failed request. After the last retry, the CRT gives the name of its error instead
  /// of the status that it retried.
  private static int status(S3FinishedResponseContext end, String name) {
    return switch (name) {
      case "AWS_ERROR_S3_SLOW_DOWN" -> 503;
      case "AWS_ERROR_S3_INTERNAL_ERROR" -> 500;
      default -> end.getResponseStatus();
    };
  }

  private static TransferException of(
      String operation, String subject, int status, String code, String otherwise) {
    return new TransferException(
        operation,
        subject,
        new Failure.Remote(status >= 300 ? status : 0, reason(status, code, otherwise)));
  }

  /// @param code of S3, such as `NoSuchKey`; may be empty
  /// @param otherwise what to say where neither code nor status tells
  private static String reason(int status, String code, String otherwise) {
    return switch (code) {
      case "ExpiredToken", "TokenRefreshRequired" ->
          "the credentials have expired; renew them (" + code + ")";
      case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken" ->
          "the server does not accept the credentials (" + code + ")";
      case "" ->
          switch (status) {
            case 301 -> "the bucket is in another region: set AWS_REGION";
            case 400 -> "Bad Request; are the credentials still valid?";
            case 403 -> "Forbidden: the credentials do not allow this, or the object is not there";
            case 404 -> "Not Found";
            case 412 -> "the file changed after it was opened";
            case 429 -> "Too Many Requests";
            default -> otherwise.isEmpty() ? "the server refused" : otherwise;
          };
      case "PermanentRedirect",
          "AuthorizationHeaderMalformed",
          "IllegalLocationConstraintException" ->
          "the bucket is in another region: set AWS_REGION (" + code + ")";
      case "NoSuchKey" ->
          "no such object or bucket (NoSuchKey); the name of a folder ends with '/'";
      case "PreconditionFailed" -> "the file changed after it was opened";
      default -> code;
    };
  }

  /// The SDK's message on one line: it names all that the SDK's chain tried, in several sentences.
  private static String line(SdkException e) {
    String message = String.valueOf(e.getMessage());
    if (message.startsWith("Unable to load credentials")) {
      String profile =
          ProfileFileSystemSetting.AWS_PROFILE
              .getStringValue()
              .map(name -> "; the profile " + name + " has none, or is not there")
              .orElse("");
      return "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or"
          + " run where AWS gives them"
          + profile;
    }
    if (message.startsWith("Unable to load region")) {
      return "no region: set AWS_REGION";
    }
    return message;
  }
}
